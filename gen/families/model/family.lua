-- The family of whole models; gen/families/list.lua says what its fields mean.
local checkpoint = require "gen.model.checkpoint_names"
local dtype = require "gen.plan.dtype"
local later = require "gen.host.later"
local machine = require "gen.plan.machine"
local misuse = require "gen.model.misuse"
local tokenizer = require "gen.families.tokenizer.family"
local transformer = require "gen.families.model.blocks.family"

local block_lookup = later "gen.families.model.blocks.block_lookup"
local describe = later "gen.families.model.describe"
local firmware = later "gen.families.model.firmware"
local plan = later "gen.families.model.plan"
local print_training = later "gen.families.model.print_training"
local training = later "gen.families.model.training"
local web = later "gen.families.model.web"

local family = {
    name = "whole",
    noun = "whole model",
    model = require "gen.families.model.model",
    -- facts: as of a tokenizer
    options = {
        "type",
        "cache",
        "activations",
        "tables",
        "projection",
        "decode",
        "schedule",
        "for",
        "tuned",
        "facts",
        "lengths",
        "html",
        "threads",
        "unfused",
        "blocks-in-out",
        "calibrate-ids",
        "tokenizer",
    },
    types = { "type", "cache", "activations", "tables", "projection" },
    space = transformer.space,
    print = later "gen.families.model.print",
    wrapper = "whole",
    input = "int32_t",
    output = "float",
    left_out = checkpoint.left_out,
    firmware = firmware,
    training = { header = "templates/model/training/model.h" },
}

function family.isa_types(options, m) return transformer.isa_types(options, m, m and family.model.looks_up(m)) end
function family.describe(...) return describe.lines(...) end
function family.summary(...) return describe.summary(...) end
function family.packed_text(...) return describe.packed_text(...) end
function family.web(...) return web.of(...) end
function family.training.add(...) return training.add(...) end
function family.training.api(...) return print_training.api(...) end
function family.training.files(...) return print_training.files(...) end

function family.calibrations(p)
    local blocks = {}
    for i, segment in ipairs(p.segments) do
        blocks[i] = segment.plan
    end
    return block_lookup.calibrations(blocks)
end

function family.sizes(p)
    local list = {
        { "vocab", "ids are 0 to this less 1" },
        { "d_out", "values of a row" },
        { "context", "tokens of a sequence" },
        { "layers", "blocks" },
        { "scratch_bytes", "that a call works in" },
        { "weights_type", "of the weights", text = p.type.name },
        { "cache_type", "of keys and values", text = p.options.cache },
    }
    if p.causal then
        list[#list + 1] = { "state_bytes", "of a sequence" }
        list[#list + 1] = { "step_scratch_bytes", "that a call for one token works in" }
    end
    if p.facts then table.move(tokenizer.sizes(p), 1, 3, #list + 1, list) end
    return list
end

function family.build(m, isas, options, wanted)
    local target, one_by_one = options.firmware, nil
    if target and dtype.get(options.activations, "activations").products then
        misuse('--activations: "' .. options.activations .. '": not for firmware, which multiplies floats')
    end
    if target then
        wanted, one_by_one = firmware.schedule(m, isas, wanted)
    end
    return plan.build(m, machine.sets(isas, options["for"]), {
        type = options.type,
        cache = options.cache,
        activations = options.activations,
        tables = options.tables,
        projection = options.projection,
        schedule = wanted,
        facts = options.facts,
        target = target,
        one_by_one = one_by_one,
        machine = options["for"],
    })
end

return family
