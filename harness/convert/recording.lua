-- The blocks of a whole model one by one, a model cut off behind one of them, and the states of texts there.
local block_lookup = require "gen.families.transformer.block_lookup"
local families = require "gen.families.list"
local library = require "harness.whole.library"
local model_file = require "gen.families.model_file"
local whole_model = require "gen.families.whole.model"

local recording = {}

-- The transformers of one layer each that model `m` consists of.
function recording.blocks(m)
    local list = {}
    for _, segment in ipairs(whole_model.segments(m)) do
        for i = 1, segment.layers do
            local block = {}
            for key, value in pairs(segment) do
                block[key] = value
            end
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

-- The least LookupFFN there is: with zeros for tables a block's results are the states before its FFN.
recording.nothing =
    { kind = "lookup", h = 1, tau = 1, projection = { kind = "dense" }, score = "gelu", neighbours = 1, scale = "none" }

-- The plan of the first `count` blocks of model `m`, the last of which has `recording.nothing` for an FFN: its results
-- are the states of tokens that this block's FFN, or the norm before it, reads.
function recording.plan_until(m, count, sets, path)
    local given = copy(m)
    given.output, given.tied, given.tokenizer, given.layers = nil, nil, nil, {}
    given.name = "convert_until_" .. count
    for i, block in ipairs(recording.blocks(m)) do
        if i <= count then
            if i == count then block.ffn = recording.nothing end
            given.layers[i] = {
                count = 1,
                d = block.d,
                heads = block.heads,
                kv_heads = block.kv_heads,
                head_dim = block.head_dim,
                d_in = block.d_in,
                ffn = copy(block.ffn),
            }
            given.d, given.heads, given.kv_heads, given.ffn = block.d, block.heads, block.kv_heads, copy(block.ffn)
            given.head_dim, given.d_in = nil, nil
        end
    end
    local cut = model_file.validate(given, "", path)
    return families.get("whole").build(cut, sets, {}, nil)
end

-- The tensors of plan `p` of a whole model: { {name, shape, optional} }, each once.
function recording.tensors(p)
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
function recording.ffn_tensors(m, block, layer)
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
function recording.states(p, opened, batch)
    if not p.causal then return assert(opened:encode_batch(batch)) end
    local parts = {}
    for i, ids in ipairs(batch) do
        parts[i] = assert(opened:state():prefill_all(ids))
    end
    return table.concat(parts)
end

-- Compiles and binds plan `p` with the checkpoint `weights`.
function recording.open(p, weights, options)
    return library.of(p, { weights = weights, cc = options.cc, cflags = options.cflags, threads = 1 })
end

return recording
