-- The choices that change speed and never results, and their defaults from nominal cache sizes.
--
--   tile.vectors     vectors of tokens in a tile: its features are held one vector after the other
--   product.outputs  outputs of the block product held in registers; divides the panel of 8
--   project.tiles    tiles that share one pass over the projection's weights
--   butterfly.radix  widest butterfly held in registers
--   gather.columns   columns of a packed table tile (the blob's layout: one for all instruction sets of a bundle)
--   gather.group     tables gathered in one pass over the tokens
--   gather.vectors   accumulators of the gather
--   chunk.tokens     tokens whose codes are kept in scratch between projection and gather
local schedule = {}

schedule.order = { "tile.vectors", "product.outputs", "project.tiles", "butterfly.radix",
    "gather.columns", "gather.group", "gather.vectors", "chunk.tokens" }

local function power_of_two_at_most(n)
    local power = 1
    while power * 2 <= n do power = power * 2 end
    return power
end

local function clamp(n, least, most) return math.max(least, math.min(most, n)) end

function schedule.default(shape, isa)
    local s = {}
    s["tile.vectors"] = isa.lanes == 1 and 4 or 2
    s["product.outputs"] = isa.registers >= 32 and 8 or 4
    local tile = s["tile.vectors"] * isa.lanes
    -- Two ping-pong buffers of the projection in half of L2.
    s["project.tiles"] = clamp(power_of_two_at_most(isa.l2_bytes // 2 // (2 * shape.padded * tile * 4)), 1, 8)
    s["butterfly.radix"] = isa.registers >= 32 and 16 or 8
    s["gather.columns"] = math.min(shape.d_out, 64)
    s["gather.vectors"] = isa.lanes == 1 and 4 or math.min(8, isa.registers // 2)
    -- A group's slice of the tables stays in half of L2; more than 16 tables gain nothing.
    local slice = shape.rows * s["gather.columns"] * 4
    s["gather.group"] = clamp(power_of_two_at_most(math.max(1, isa.l2_bytes // 2 // slice)), 1, math.min(16, shape.h))
    -- Tables that leave L2 are read once a chunk: long enough that each row is used about 16 times.
    local step = s["project.tiles"] * tile
    local in_cache = shape.h * shape.rows * shape.d_out * 4 <= isa.l2_bytes // 2
    s["chunk.tokens"] = in_cache and step or clamp(power_of_two_at_most(16 * shape.rows), step, math.max(step, 4096))
    return s
end

-- "tile.vectors=2,product.outputs=8,…" in a fixed order.
function schedule.text(s)
    local list = {}
    for i, key in ipairs(schedule.order) do list[i] = key .. "=" .. s[key] end
    return table.concat(list, ",")
end

return schedule
