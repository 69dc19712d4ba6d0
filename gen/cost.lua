-- Counts floating-point operations and bytes of a model: the figures of `lookupc plan`.
local cost = {}

local function log2(n)
    local bits = 0
    while 1 << bits < n do bits = bits + 1 end
    return bits
end

-- MFLOP a token as the paper counts (math.md, "Cost"): projection and gather.
function cost.lookup(shape)
    local projection
    if shape.kind == "bh4" then
        projection = shape.repeats * 4 * shape.padded * (2 * shape.block + log2(shape.padded))
    else
        projection = 2 * shape.d * shape.bits
    end
    return (projection + 2 * shape.h * shape.d_out) / 1e6
end

-- The same after exact folding: what the emitted code does.
function cost.folded(shape, projection_flops) return (projection_flops + 2 * shape.h * shape.d_out) / 1e6 end

-- The feed-forward network d -> 4d -> d_out that a LookupFFN replaces.
function cost.dense_hidden(shape) return 4 * shape.d end
function cost.dense(shape)
    local hidden = cost.dense_hidden(shape)
    return 2 * hidden * (shape.d + shape.d_out) / 1e6
end

return cost
