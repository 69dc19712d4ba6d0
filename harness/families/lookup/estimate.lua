-- What a schedule should cost, from operations and bytes alone: a guess that orders candidates, and never decides
-- between two of them.
--
-- Cycles of a nominal core: two loads and one or two multiply-adds a cycle, and so many bytes a cycle from each cache.
-- A real core differs; measuring is what tuning is for.
local product = require "gen.families.lookup.product"

local estimate = {}

local fma_latency = 4
local loads_a_cycle = 2
local l1_rate, l2_rate, l3_rate, memory_rate = 64, 32, 8, 4 -- bytes a cycle
local instruction_bytes = 8 -- of a vector instruction with an address

-- Bytes a cycle from the smallest cache that holds `bytes`.
local function rate(bytes, caches)
    return bytes <= caches.l1d and l1_rate
        or bytes <= caches.l2 and l2_rate
        or bytes <= caches.l3 and l3_rate
        or memory_rate
end

local function up(n, step) return (n + step - 1) // step end

local function log2(n)
    local bits = 0
    while 1 << bits < n do
        bits = bits + 1
    end
    return bits
end

-- Floats of a vector: compilers make vectors of four out of portable C, with 16 registers.
local function lanes_of(isa) return math.max(isa.lanes, 4) end

-- Cycles of `flops` of products with `inputs` vectors of inputs times `weights` weights held in registers.
local function products(flops, isa, inputs, weights)
    local per_cycle = isa.lanes >= 16 and 1 or 2
    local fmas = flops / 2 / lanes_of(isa)
    local waiting = math.max(1, fma_latency * per_cycle / (inputs * weights))
    return math.max(fmas / per_cycle * waiting, fmas * (1 / inputs + 1 / weights) / loads_a_cycle)
end

-- Cycles of one row's `vectors` vectors added to sums held in registers: finding the row, then a load and a
-- multiply-add a vector.
local function row(shape, vectors, unroll, integer_sums, byte_scores)
    local each = integer_sums and (byte_scores == 1 and 0.3 or 0.4) or shape.tables.bytes < 4 and 1 or 1 / loads_a_cycle
    return math.max(1.5 + 1 / unroll + vectors * each, fma_latency / 2)
end

-- The buffers of a pass of the projection, and the slice of the tables that a group of them is: what should stay in L2,
-- in bytes.
function estimate.tile_bytes(shape, isa, s)
    local rows = shape.kind == "bh4" and 2 * shape.padded or shape.padded + shape.bits
    return rows * s["project.tiles"] * s["tile.vectors"] * isa.lanes * 4
end
function estimate.slice_bytes(shape, s)
    return math.min(s["gather.group"], shape.h) * shape.rows * s["gather.columns"] * shape.tables.bytes
end

-- Vector registers that the innermost loops need at once.
function estimate.registers(isa, s, regime)
    if regime == "few" then
        return math.max(
            product.few_vectors(isa) * isa.lanes // lanes_of(isa) * s["few.tokens"],
            s["few.accumulators"] * isa.lanes // lanes_of(isa)
        ) + 2
    end
    return math.max(
        s["product.outputs"] * s["tile.vectors"] * isa.lanes // lanes_of(isa),
        s["butterfly.radix"],
        s["gather.accumulators"],
        s["whole.tokens"] > 0 and s["whole.accumulators"] or 0
    ) + 2
end

-- Code of the innermost loops of all stages, in bytes.
function estimate.text_bytes(shape, isa, s, regime)
    local few = regime == "few"
    local vectors, weights = s["tile.vectors"], s["product.outputs"]
    if few then
        vectors, weights = s["few.tokens"], product.few_vectors(isa)
    end
    local radix = s["butterfly.radix"]
    local sums, unroll = few and s["few.accumulators"] or s["gather.accumulators"], few and 1 or s["gather.unroll"]
    local ahead = few and s["few.prefetch"] > 0 and 4 + sums or 0
    local codelet = vectors * weights + vectors + weights
    local butterfly = shape.kind == "bh4" and radix * (2 + log2(radix)) or 0
    local hash = shape.tau * 8
    local rows = unroll * (2 * sums + 5 + ahead) + 2 * sums
    return (codelet + butterfly + hash + rows) * instruction_bytes
end

-- Local arrays of the kernels in bytes: pointers to the rows of a tile; of few tokens scores of rows that are summed as
-- integers.
function estimate.stack_bytes(shape, isa, s, regime, integer_sums)
    if regime == "many" then return 8 * s["tile.vectors"] * isa.lanes end
    return math.max(
        8,
        integer_sums and (#integer_sums.scores * up(s["few.group"] * shape.neighbours, integer_sums.rows) + 1) * 4 or 0,
        (shape.tau + 1) * isa.lanes * 4
    )
end

local into_l2 = 3 -- the value of `prefetch` by which rows are prefetched into L2

-- Cycles in which a token gathers whole rows, as the choices of `s` for `calls` say, "whole" or "few".
local function whole_rows(p, isa, s, calls, caches, integer_sums)
    local shape, lanes, group, prefetch = p.shape, lanes_of(isa), s[calls .. ".group"], s[calls .. ".prefetch"]
    local width, prefetches = s[calls .. ".accumulators"] * lanes, prefetch > 0
    local strips, byte_scores = up(shape.d_out, width), s[(calls == "few" and "few" or "gather") .. ".byte_scores"]
    local vectors = up(math.min(width, shape.d_out), lanes)
    local cycles = shape.slots * strips * row(shape, vectors, 1, integer_sums, byte_scores)
    cycles = cycles + up(shape.h, group) * 2 * shape.d_out * 4 / l1_rate
    -- Rows met at random come as fast as they are prefetched, a strip of a line or two ahead; wider strips come in
    -- bursts, but for those that L2 has time to take.
    local from = rate(p.table_bytes, caches)
    local lines = up(math.min(width, shape.d_out) * shape.tables.bytes, 64)
    local followed = group <= 16 and 1 or 0.75 -- rows that a core sees go on
    local in_time = from >= l2_rate or prefetch == into_l2
    local hidden = in_time and 1 or not prefetches and 0.4 or lines > 2 and 0.75 or followed
    cycles = cycles + shape.slots * shape.d_out * shape.tables.bytes / from / hidden
    return cycles + (prefetches and shape.slots * strips * (1 + lines) / 2 or 0)
end

-- Cycles in which a token of a chunk of `tokens` gathers slices of the tables.
local function slices(p, isa, s, caches, tokens, integer_sums)
    local shape, lanes = p.shape, lanes_of(isa)
    -- Every group of tables and tile of columns visits a token: its sums come and go, its codes are read.
    local columns, group = s["gather.columns"], s["gather.group"]
    local visits = up(shape.d_out, columns) * up(shape.h, group)
    local waiting = tokens * (columns * 4 + shape.slots * 6)
    local cycles = visits * (8 + 2 * columns * 4 / l1_rate)
        + up(shape.d_out, columns) * (shape.slots * 6 + 2 * columns * 4) / rate(waiting, caches)
    local strips = up(shape.d_out, columns) * up(columns, s["gather.accumulators"] * lanes)
    local width = math.min(columns, s["gather.accumulators"] * lanes)
    cycles = cycles
        + shape.slots
            * strips
            * row(shape, up(width, lanes), s["gather.unroll"], integer_sums, s["gather.byte_scores"])

    local slice = estimate.slice_bytes(shape, s)
    local copied, next = s["gather.pack"] > 0, s["gather.prefetch_next"] == 1
    local near, home = rate((next and 2 or 1) * slice, caches), rate(p.table_bytes, caches)
    -- pieces in place lie on as many pages as there are rows
    if not copied and columns < shape.d_out then near = near * 0.7 end
    cycles = cycles + shape.slots * shape.d_out * shape.tables.bytes / near
    if home < rate(slice, caches) then -- a slice comes from there once a chunk
        local share = p.table_bytes / tokens
        cycles = cycles
            + share / home * (next and 0.7 or 1)
            + (next and share / 64 or 0)
            + (copied and 2 * share / l2_rate or 0)
    end
    return cycles
end

-- Cycles of a token in calls of `batch`, a chunk at a time, the last of which may be so short that it gathers whole
-- rows.
local function many(p, isa, s, caches, batch, integer_sums)
    local shape, lanes = p.shape, lanes_of(isa)
    local tile = s["tile.vectors"] * isa.lanes
    local pass, chunk = s["project.tiles"] * tile, s["chunk.tokens"]
    local bh4 = shape.kind == "bh4" and s["project.dense"] == 0
    local stages, blocks = bh4 and 4 * shape.repeats or 1, bh4 and shape.padded // shape.block or 1
    local of = not bh4 and p.multiplied or { flops = p.mflop.projection * 1e6, bytes = p.projection_bytes }

    local cycles = products(of.flops, isa, math.max(1, tile // lanes), s["product.outputs"])
    cycles = cycles + of.bytes / pass / rate(of.bytes, caches)
    cycles = cycles + stages * 2 * shape.padded * 4 / rate(estimate.tile_bytes(shape, isa, s), caches)
    local passes = up(log2(blocks), log2(s["butterfly.radix"]))
    cycles = cycles + stages * shape.padded / lanes * (passes * 1.5 + log2(blocks) / 2)

    local function gathered(tokens)
        if tokens > s["whole.tokens"] then return slices(p, isa, s, caches, tokens, integer_sums) end
        return whole_rows(p, isa, s, "whole", caches, integer_sums)
    end
    local rest = batch % chunk
    cycles = cycles + (rest > 0 and rest / batch * gathered(rest) or 0)
    return cycles + (rest < batch and (batch - rest) / batch * gathered(chunk) or 0)
end

local function few(p, isa, s, caches, batch, integer_sums)
    local lanes = lanes_of(isa)
    local tokens = math.min(s["few.tokens"], batch)
    local vectors = math.max(1, product.few_vectors(isa) * isa.lanes // lanes)
    local cycles = products(p.mflop.projection * 1e6, isa, tokens, vectors)
    cycles = math.max(cycles, p.projection_bytes / tokens / rate(p.projection_bytes, caches))
    return cycles + whole_rows(p, isa, s, "few", caches, integer_sums)
end

-- Cycles of a token in calls of `batch` tokens, by the kernels of `regime` ("few" or "many") of the plan `p` with
-- schedule `s` of `isa`.
--   caches  l1d, l2, l3 in bytes    integer_sums  its words (gen/families/lookup/integer_sums.lua), nil: none
function estimate.cycles(p, isa, s, regime, caches, batch, integer_sums)
    return (regime == "few" and few or many)(p, isa, s, caches, batch, integer_sums)
end

return estimate
