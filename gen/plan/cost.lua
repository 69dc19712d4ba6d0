-- Counts floating-point operations and bytes of a model, and the least time that they take on a core of given limits.
local cost = {}

local function log2(n)
    local bits = 0
    while 1 << bits < n do
        bits = bits + 1
    end
    return bits
end

-- MFLOP a token as the paper counts (LookupFFN, table 2): projection and gather.
function cost.lookup(shape)
    local projection
    if shape.kind == "bh4" then
        projection = shape.repeats * 4 * shape.padded * (2 * shape.block + log2(shape.padded))
    else
        projection = 2 * shape.d * shape.bits
    end
    return (projection + 2 * shape.slots * shape.d_out) / 1e6
end

-- The same after exact folding: what the emitted code does.
function cost.folded(shape, projection_flops) return (projection_flops + 2 * shape.slots * shape.d_out) / 1e6 end

cost.max_threads = 1024 -- that an OpenMP build may have

-- The tokens from which a thread of their own pays: 8 MFLOP take over 100 µs, a thread that has to be woken about 20.
-- mflop: of a token.
function cost.tokens_worth_a_thread(mflop) return math.ceil(8 / mflop) end

-- The part of a chunk of `chunk` tokens that is worth a thread: a divisor of it of `least` tokens at least that has
-- whole tiles of each of `tiles`, so that kernels for several tokens find them side by side as in the whole chunk.
function cost.part(chunk, least, tiles)
    local part = 12 -- what chunks are made of
    while part < chunk do
        local fits = part >= least and chunk % part == 0
        for _, tile in ipairs(tiles) do
            fits = fits and part % tile == 0
        end
        if fits then return part end
        part = 2 * part
    end
    return chunk
end

-- The feed-forward network d -> 4d -> d_out that a LookupFFN replaces.
function cost.dense_hidden(shape) return 4 * shape.d end
function cost.dense(shape)
    local hidden = cost.dense_hidden(shape)
    return 2 * hidden * (shape.d + shape.d_out) / 1e6
end

-- The least time of a token in µs, and its parts: { projection, gather }.
--   work    what the emitted code does: projection_flops a token, products_at_once: of integers that are made
--           in the time of one of floats (absent: 1), projection_bytes of its weights, `pass` tokens that share one
--           reading of them, row_bytes read from the tables a token, table_bytes of all tables, tokens of a call, chunk
--   limits  of one core: fma_gflops; l1, l2, l3, memory and random_rows _gbytes
--   caches  l1d, l2, l3 in bytes
-- Projection: its operations at the peak of FMA, or its weights from the smallest cache that could hold them, whichever
-- takes longer. Gather: the better one of two ways. Every row is read by itself where it lies, at the rate of random
-- rows; or the tables come once a chunk from the smallest cache that could hold them, or from memory, and rows are then
-- read from L2. The gather's own operations run beside its loads, and reading x and writing y is left out. So it is a
-- bound that real code only comes near to.
function cost.limit(work, limits, caches)
    local function rate(bytes)
        for _, level in ipairs {
            { caches.l1d, limits.l1_gbytes },
            { caches.l2, limits.l2_gbytes },
            { caches.l3, limits.l3_gbytes },
        } do
            if bytes <= level[1] then return level[2] end
        end
        return limits.memory_gbytes
    end
    local function us(amount, giga) return amount / (giga * 1e3) end

    local compute = us(work.projection_flops, limits.fma_gflops * (work.products_at_once or 1))
    local weights = us(work.projection_bytes, rate(work.projection_bytes)) / math.min(work.pass, work.tokens)
    local projection = math.max(compute, weights)

    local gather
    if work.table_bytes <= caches.l2 then
        gather = us(work.row_bytes, rate(work.table_bytes))
    else
        local tables = us(work.table_bytes, rate(work.table_bytes)) / math.min(work.chunk, work.tokens)
        gather = math.min(us(work.row_bytes, limits.random_rows_gbytes), us(work.row_bytes, limits.l2_gbytes) + tables)
    end
    return projection + gather, { projection = projection, gather = gather }
end

return cost
