-- The blocks of a whole model one by one, a model cut off before the FFN of one of them, and what texts bring there.
local block_lookup = require "gen.families.model.blocks.block_lookup"
local compiled_model = require "harness.calls.compiled_model"
local copied = require "gen.schema.copied"
local model_file = require "gen.families.model_file"
local rules = require "gen.families.model.model"
local same = require "gen.schema.same"
local whole_plan = require "gen.families.model.plan"

local activations = {}

-- The transformers of one layer each that model `m` consists of.
function activations.blocks(m)
    local list = {}
    for _, segment in ipairs(rules.segments(m)) do
        for i = 1, segment.layers do
            local block = copied(segment)
            block.layers = 1
            if i > 1 then block.d_in = nil end
            list[#list + 1] = block
        end
    end
    return list
end

local function copy(value)
    if type(value) ~= "table" then return value end
    local result = {}
    for key, own in pairs(value) do
        result[key] = copy(own)
    end
    return result
end

-- The least LookupFFN there is, in place of one that is left out.
activations.nothing =
    { kind = "lookup", h = 1, tau = 1, projection = { kind = "dense" }, score = "gelu", neighbours = 1, scale = "none" }

-- The entries of `layers` for a list of blocks, of which equal ones share one.
function activations.entries(blocks)
    local list = {}
    for _, block in ipairs(blocks) do
        local entry = { d = block.d, heads = block.heads, kv_heads = block.kv_heads, head_dim = block.head_dim }
        entry.d_in, entry.ffn = block.d_in, copy(block.ffn)
        local before = list[#list]
        entry.count = before and before.count
        if before and not entry.d_in and same(entry, before) then
            before.count = before.count + 1
        else
            entry.count, list[#list + 1] = 1, entry
        end
    end
    return list
end

-- Model `m`, from the file `path`, with other blocks, which becomes a model of its own with the fields of `changes`.
-- Fields that are false there are left out.
function activations.with_blocks(m, blocks, changes, path)
    local given, last = copy(m), blocks[#blocks]
    given.layers = activations.entries(blocks)
    given.d, given.heads, given.kv_heads, given.ffn = last.d, last.heads, last.kv_heads, copy(last.ffn)
    given.head_dim, given.d_in = nil, nil
    local full = given.attention.full_layers
    while full and full[1] and full[#full] >= #blocks do
        full[#full] = nil
    end
    for key, value in pairs(changes) do
        given[key] = value or nil
    end
    return model_file.validate(given, "", path)
end

-- What is left of the steps of a block up to its lookup FFN, whose input is its result then.
local function up_to_ffn(maps, before, after)
    local list = {}
    for _, step in ipairs(after) do
        if step.op == "lookup" then
            list[#list + 1] = { op = "output", from = step.from }
            break
        end
        list[#list + 1] = step
    end
    return maps, before, list
end

-- The plan of the first `count` of `blocks` of model `m`, from the file `path`: its results are what the FFN of the
-- last one reads. That FFN is `recording.nothing`. tables: the type of those before, nil: f32.
function activations.plan_until(m, blocks, count, sets, path, tables)
    local own = table.move(blocks, 1, count, 1, {})
    own[count] = setmetatable({ ffn = activations.nothing }, { __index = blocks[count] })
    local changes = { name = "convert_until_" .. count, output = false, tied = false, tokenizer = false }
    local cut = activations.with_blocks(m, own, changes, path)
    local last, number = #rules.segments(cut), 0
    return whole_plan.build(cut, sets, {
        tables = tables,
        part = function(maps, before, after) -- called for each run of blocks in turn
            number = number + 1
            if number < last then return maps, before, after end
            return up_to_ffn(maps, before, after)
        end,
    })
end

-- The tensors of plan `p` of a whole model: { {name, shape, optional} }, each once.
function activations.tensors(p)
    local list, seen = {}, {}
    for _, piece in ipairs(p.pieces) do
        if piece.from and not seen[piece.from] then
            seen[piece.from] = true
            list[#list + 1] = { name = piece.from, shape = piece.shape, optional = piece.optional }
        end
    end
    return list
end

-- The tensors of the lookup FFN of `block`, layer `layer` (from 0) of model `m`: { name, shape, field of a fit }.
function activations.ffn_tensors(m, block, layer)
    local list, prefix = {}, block_lookup.prefix(m, layer)
    local fields = {
        ["hash.projection.weight"] = "projection",
        ["hash.projection.bias"] = "projection_bias",
        tables = "tables",
        bias = "bias",
    }
    for i, tensor in ipairs(block_lookup.samples(block, layer, block.d)) do
        list[i] = { name = tensor.name, shape = tensor.shape, field = fields[tensor.name:sub(#prefix + 1)] }
    end
    return list
end

-- The states of the sequences of ids in `batch`, bytes of float32: of model `opened` of plan `p`.
function activations.states(p, opened, batch)
    if not p.causal then return assert(opened:encode_batch(batch)) end
    local parts = {}
    for i, ids in ipairs(batch) do
        parts[i] = assert(opened:state():prefill_all(ids))
    end
    return table.concat(parts)
end

-- Compiles and binds plan `p` with the checkpoint `weights`.
function activations.open(p, weights, options)
    return compiled_model.of(p, { weights = weights, cc = options.cc, cflags = options.cflags, threads = 1 })
end

return activations
