-- The family of models: a transformer is blocks alone, a whole model has what stands before and behind them.
-- gen/families/list.lua says what the fields of their records mean.
local checkpoint = require "gen.schema.checkpoint_names"
local dtype = require "gen.plan.dtype"
local lazy = require "gen.host.lazy"
local machines = require "gen.machines.list"
local misuse = require "gen.schema.misuse"
local rules = require "gen.families.model.model"
local tokenizer = require "gen.families.tokenizer.family"

local block_lookup = lazy "gen.families.model.blocks.block_lookup"
local describe = lazy "gen.families.model.describe"
local firmware = lazy "gen.families.model.firmware"
local plan = lazy "gen.families.model.plan"
local print = lazy "gen.families.model.print"
local print_training = lazy "gen.families.model.training.print"
local training = lazy "gen.families.model.training.plan"
local types = lazy "gen.families.model.types"
local web = lazy "gen.families.model.web"

-- What both records have.
local family = {
    types = rules.types,
    space = lazy "gen.families.model.blocks.schedule",
    print = print,
    output = "float",
    left_out = checkpoint.left_out,
    benchmark = lazy "gen.families.model.benchmark",
}

function family.describe(...) return describe.lines(...) end
function family.summary(...) return describe.summary(...) end
function family.packed_text(...) return describe.packed_text(...) end
function family.calibrations(p) return block_lookup.calibrations(rules.blocks_of(p)) end

function family.build(m, isas, options, wanted)
    local target, one_by_one = options.firmware, nil
    if target and dtype.get(options.activations, "activations").products then
        misuse('--activations: "' .. options.activations .. '": not for firmware, which multiplies floats')
    end
    if target and options["multiply-out"] then
        misuse "--multiply-out: is for calls of many tokens, and those of firmware are of one"
    end
    if target then
        wanted, one_by_one = firmware.schedule(m, isas, wanted)
    end
    local given = rules.with_types(options, {
        schedule = wanted,
        facts = options.facts,
        target = target,
        one_by_one = one_by_one,
        machine = options["for"],
        training = options.training,
        sequences = options.sequences, -- of blocks, not of the command line
    })
    return plan.build(m, machines.sets(isas, options["for"]), given)
end

function family.isa_types(options, m) return types.of_sets(types.of(options, m)) end

local function record(own)
    local both = "type cache activations tables projection decode schedule for tuned unfused blocks-in-out multiply-out"
    for word in both:gmatch "%S+" do
        table.insert(own.options, word)
    end
    return setmetatable(own, { __index = family })
end

local blocks = record {
    name = "transformer",
    noun = "transformer",
    model = rules.blocks,
    options = { "position", "rivals" },
    wrapper = "blocks",
    input = "float",
}

function blocks.sizes(p)
    local shape = p.shape
    local list = {
        { "d", "width of a token" },
        { "d_in", "width of a token's input", value = shape.input == shape.d and p.names.macro "D" or nil },
        { "layers", "blocks" },
        { "heads", "heads of q" },
        { "kv_heads", "heads of k and v" },
        { "context", "positions of a sequence" },
        { "cache_bytes", "of a cache" },
        { "scratch_bytes", "that a call works in" },
        { "weights_type", "of the weights", text = shape.type.name },
        { "cache_type", "of keys and values", text = shape.cache.type.name },
    }
    if shape.causal then list[#list + 1] = { "decode_scratch_bytes", "that a call for one token works in" } end
    return list
end

local whole = record {
    name = "whole",
    noun = "whole model",
    model = rules.whole,
    -- facts: as of a tokenizer
    options = { "facts", "lengths", "html", "threads", "calibrate-ids", "tokenizer" },
    wrapper = "whole",
    input = "int32_t",
    firmware = firmware,
    training = { header = "templates/model/training/model.h" },
}

function whole.web(...) return web.of(...) end
function whole.training.add(...) return training.add(...) end
function whole.training.api(...) return print_training.api(...) end
function whole.training.files(...) return print_training.files(...) end

function whole.sizes(p)
    local list = {
        { "vocab", "ids are 0 to this less 1" },
        { "d_out", "values of a row" },
        { "context", "tokens of a sequence" },
        { "layers", "blocks" },
        { "scratch_bytes", "that a call works in" },
        { "weights_type", "of the weights", text = p.options.type, bytes = #p.options.type > 15 and 48 or nil },
        { "cache_type", "of keys and values", text = p.options.cache },
    }
    if p.causal then
        list[#list + 1] = { "state_bytes", "of a sequence" }
        list[#list + 1] = { "step_scratch_bytes", "that a call for one token works in" }
    end
    if p.facts then table.move(tokenizer.sizes(p), 1, 3, #list + 1, list) end
    return list
end

return { blocks = blocks, whole = whole }
