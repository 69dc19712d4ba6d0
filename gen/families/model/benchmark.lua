-- What a bundle's own benchmark calls of blocks and of whole models; gen/families/list.lua says what its fields mean.
local dtype = require "gen.plan.dtype"

local benchmark = {}

-- Tokens of a call at most: those of a sequence.
local function context_of(p)
    local held = p.shape and p.shape.sequences and p.shape.most_tokens or math.huge
    return math.min(p.context or p.shape.context, p.model.attention.context, held)
end

-- The first of `list` that the context of plan `p` holds, or all that it does.
local function held(p, list)
    local some, context = {}, context_of(p)
    for _, tokens in ipairs(list) do
        some[#some + 1] = math.min(tokens, context)
        if tokens >= context then break end
    end
    return some
end

function benchmark.batches(p)
    if p.target then return held(p, { 1, 8 }) end
    return held(p, p.embedding and { 1, 16, 128, 512 } or { 1, 512 })
end

benchmark.most = context_of

function benchmark.memory(p)
    local macro = p.names.macro
    if p.embedding then return { ids = true, memory = p.causal and "state", width_out = macro "D_OUT" } end
    return { memory = "cache", width = macro(p.shape.input == p.shape.d and "D" or "D_IN"), width_out = macro "D" }
end

local function calls_of_blocks(p)
    local names = p.names
    if p.shape.causal then
        local x = "x + i * " .. benchmark.memory(p).width
        return {
            { name = names.prefill, arguments = { "weights", "cache", "x", "y", "0", "tokens", "scratch" } },
            {
                name = names.decode,
                one_by_one = true,
                last = true,
                arguments = { "weights", "cache", x, "y", "i", "scratch" },
            },
        }
    elseif p.shape.sequences then
        local arguments = { "weights", "cache", "x", "y", "offsets", "sequences", "scratch" }
        return { { name = names.encode_batch, arguments = arguments, sequences = 1 } }
    end
    return { { name = names.encode, arguments = { "weights", "cache", "x", "y", "tokens", "scratch" } } }
end

-- Of whole models: that for the results of all tokens is left out in firmware, which has no room for them.
local function calls_of_whole(p)
    local names = p.names
    if not p.causal then
        return {
            { name = names.encode, arguments = { "weights", "ids", "tokens", "y", "scratch" }, pooled = p.output.pool },
            {
                name = names.encode_batch,
                arguments = { "weights", "ids", "offsets", "sequences", "y", "scratch" },
                sequences = 4,
                pooled = p.output.pool,
            },
        }
    end
    local of_many, start = { "weights", "state", "ids", "tokens", "y", "scratch" }, names.start
    local list = { { name = names.prefill, start = start, last = true, arguments = of_many } }
    if not p.target then list[2] = { name = names.prefill_all, start = start, arguments = of_many } end
    list[#list + 1] = {
        name = names.step,
        start = start,
        one_by_one = true,
        last = true,
        arguments = { "weights", "state", "ids[i]", "y", "scratch" },
    }
    return list
end

function benchmark.calls(p)
    local list = (p.embedding and calls_of_whole or calls_of_blocks)(p)
    for _, call in ipairs(list) do
        call.status = true
    end
    return list
end

function benchmark.rows(_, call, tokens, sequences)
    if call.last then return 1 end
    return call.pooled and sequences or tokens
end

-- Rows of tables, and of a whole model's embedding.
function benchmark.row_bytes(p)
    local bytes = 0
    for _, segment in ipairs(p.segments) do
        for _, part in ipairs(segment.plan.parts) do
            local own = part.plan
            bytes = bytes + part.count * own.shape.slots * dtype.size(own.tables, own.shape.d_out)
        end
    end
    local e = p.embedding
    if not e then return bytes end
    local of_embedding = (e.strided and 0 or p.rows_type.bytes) + (e.positions and 4 or 0)
    bytes = bytes + e.width * of_embedding
    for _, part in ipairs(e.projected and e.projected.parts or {}) do
        bytes = bytes + part.width * (p.rows_type.bytes + (part.positions and 4 or 0))
    end
    return bytes
end

local amplified = 1e-2 -- models without norms amplify rounding
local flipped = 0.3 -- how far a code that flips moves rows of all tokens that attend to its token
local short = 2 -- tokens, of which a code rarely flips

-- What is half-way between two numbers of a narrow type may become either, layer after layer.
function benchmark.tolerance(p, tokens)
    local cache, activations = dtype.get(p.options.cache, "cache"), dtype.get(p.options.activations, "activations")
    local narrow = 4 * math.max(cache.cache.tolerance, activations.cache.tolerance)
    local tolerance = math.max(amplified, narrow)
    if not (p.lookup_types or p.shape.lsh) then return tolerance, 0 end
    local rarely = tokens <= short and cache.plain and activations.plain
    return rarely and tolerance or math.max(tolerance, flipped), 1 / 32
end

function benchmark.range() return nil end

return benchmark
