-- What a schedule of a transformer's blocks should cost: a guess that orders candidates, and never decides between two
-- of them.
--
-- Cycles of a nominal core with two loads and one or two multiply-adds a cycle; only what the choices change.
local attention = require "gen.families.model.blocks.attention"

local estimate = {}

local fma_latency = 4
local memory_rate = 4 -- bytes a cycle
local l2_bytes_kept = 0.75 -- of L2 that inputs of a product may fill

local function lanes_of(isa) return math.max(isa.lanes, 4) end

-- Cycles of `fmas` vectors of multiply-adds with `rows` times `vectors` sums in registers, each load of either shared
-- by the others.
local function multiplied(isa, fmas, rows, vectors)
    local per_cycle = isa.lanes >= 16 and 1 or 2
    return math.max(
        fmas / per_cycle * math.max(1, fma_latency * per_cycle / (rows * vectors)),
        fmas * (1 / rows + 1 / vectors) / 2
    )
end

local function elements(p)
    local count = 0
    for _, map in ipairs(p.maps) do
        count = count + map.inputs * map.outputs
    end
    return count
end

-- A token alone reads its weights from memory, of several panels side by side a tenth faster.
local function few(p, isa, s)
    local bytes = p.packed_bytes / p.shape.layers
    local hidden = s["few.streams"] > 1 and 1 or 0.9
    return math.max(
        multiplied(isa, elements(p) / lanes_of(isa), s["few.unroll"], s["few.vectors"]),
        bytes / memory_rate / hidden
    )
end

local function many(p, isa, s, caches, batch)
    local shape = p.shape
    local cycles = multiplied(isa, elements(p) / lanes_of(isa), s["product.tokens"], s["product.vectors"])
    local chunk, seen = math.min(s["chunk.tokens"], batch), math.min(batch / 2, shape.window or batch)
    cycles = cycles + p.packed_bytes / shape.layers / chunk / memory_rate
    -- Inputs that do not stay in L2 come anew for every strip of outputs; sums come and go once a depth.
    local depth = s["product.depth"]
    if chunk * depth * 4 > l2_bytes_kept * caches.l2 then cycles = cycles * 1.2 end
    cycles = cycles * (1 + 32 / depth)
    local pairs_of_rows = shape.heads * seen * shape.width / lanes_of(isa)
    local rows = math.min(attention.rows(shape, s), s["attention.tokens"] * shape.group)
    cycles = cycles
        + multiplied(isa, pairs_of_rows, rows, attention.score_vectors(isa, rows))
        + multiplied(isa, pairs_of_rows, rows, s["attention.sums"])
    return cycles + seen * shape.cache.position_bytes / shape.layers / s["attention.tokens"] / 16
end

-- Cycles of a token in a block of plan `p` in calls of `batch` tokens, by the kernels of `regime` with schedule `s` of
-- `isa`; caches: l2 in bytes.
function estimate.cycles(p, isa, s, regime, caches, batch)
    return (regime == "few" and few or many)(p, isa, s, caches, batch)
end

return estimate
