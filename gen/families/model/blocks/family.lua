-- The family of transformers; gen/families/list.lua says what its fields mean.
local checkpoint = require "gen.model.checkpoint_names"
local dtype = require "gen.plan.dtype"
local later = require "gen.host.later"
local machine = require "gen.plan.machine"

local block_lookup = later "gen.families.model.blocks.block_lookup"
local describe = later "gen.families.model.blocks.describe"
local plan = later "gen.families.model.blocks.plan"

local family = {
    name = "transformer",
    noun = "transformer",
    model = require "gen.families.model.blocks.model",
    options = {
        "type",
        "cache",
        "activations",
        "tables",
        "projection",
        "decode",
        "position",
        "schedule",
        "for",
        "tuned",
        "unfused",
        "blocks-in-out",
        "rivals",
    },
    types = { "type", "cache", "activations", "tables", "projection" },
    space = later "gen.families.model.blocks.schedule",
    print = later "gen.families.model.blocks.print",
    wrapper = "blocks",
    input = "float",
    output = "float",
    left_out = checkpoint.left_out,
}

function family.describe(...) return describe.lines(...) end
function family.summary(...) return describe.summary(...) end
function family.packed_text(...) return describe.packed_text(...) end

function family.calibrations(p) return block_lookup.calibrations { p } end

function family.build(m, isas, options, wanted)
    plan.check_lookup(m.name, m.ffn.kind == "lookup", options)
    return plan.build(m, machine.sets(isas, options["for"]), {
        type = options.type,
        cache = options.cache,
        activations = options.activations,
        tables = options.tables,
        projection = options.projection,
        schedule = wanted,
        machine = options["for"],
        sequences = options.sequences, -- not of the command line
    })
end

function family.sizes(p)
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

-- looks_up: whether a layer has a LookupFFN; if absent, the FFN of `m` says it.
function family.isa_types(options, m, looks_up)
    local type = dtype.get(options.type, "type")
    local activations = dtype.activations(options.activations, type)
    local cache = dtype.cached(options.cache, activations, m and m.attention.shaped)
    if m and looks_up == nil then looks_up = m.ffn.kind == "lookup" end
    looks_up = looks_up or options.tables or options.projection
    local looked = looks_up and plan.lookup_types(type, options) or nil
    return plan.isa_types(type, cache, activations, looked)
end

return family
