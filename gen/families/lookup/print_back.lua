-- What training's way back through a projection calls, block by block, and where its repeats have their numbers.
local expression = require "gen.isa.expression"

local sum, times = expression.sum, expression.times

-- Where, in C, a turn of a loop finds something: `first` elements behind `base`, and `step` more in each turn.
local function place(base, first, step)
    return function(turn) return sum(base, first, times(turn, step)) end
end

-- The call of the block product `q`, { name, count: of its blocks, arguments(block) }; x, y: { buffer, row of the first
-- block, rows from block to block }.
local function product(q, tile, weights, x, y)
    local from, to = place(x[1], x[2] * tile, x[3] * tile), place(y[1], y[2] * tile, y[3] * tile)
    local block_weights = place(weights, q.offset, q.block_words)
    local function arguments(block)
        return table.concat({ from(block), 0, block_weights(block), to(block), 0, 1 }, ", ")
    end
    return { name = q.name, count = q.count, arguments = arguments }
end

-- The calls of the way back through `of`, { outer, products }, a stage or a dense projection: sums of the weights'
-- gradients, from the gradients `dy` of outputs and `turned` to `gradient`; and products, which take `dy` to `dx`.
local function calls_of(of, tile, weights, dy, dx, gradient)
    local calls = {}
    for _, o in ipairs(of.outer) do
        local from, to = place(dy, o.y_row * tile, o.y_stride * tile), place(gradient, o.at, o.block)
        local turned = place("turned", o.x_row, o.x_stride)
        local function arguments(block) return table.concat({ from(block), turned(block), to(block) }, ", ") end
        calls[#calls + 1] = { name = o.name, count = o.count, arguments = arguments }
    end
    for _, q in ipairs(of.products) do
        calls[#calls + 1] = product(q, tile, weights, { dy, q.x_row, q.x_stride }, { dx, q.y_row, q.y_stride })
    end
    return calls
end

-- What happens in a repeat of `group`:
--   count, residual_rows   as the plan has them
--   forward, backward, gradient, dz   where its weights, their gradients and those of its outputs are: functions of the
--                                     repeat's number
--   again    its first three stages, as forward has them: { number, to, calls, passes }
--   stages   all of them, from the last one on: { number, input: of forward, rows: of that, from, calls, passes }
--   dx       the buffer of the gradients of its input
local function group_of(group, shape, tile)
    local tensor, floats = 4 * shape.padded * shape.block, shape.padded * tile
    local forward, inputs = group.forward, { "x_tile", "a", "b", "c" }
    local made = { count = group.count, residual_rows = group.residual_rows, again = {}, stages = {}, dx = "dy4" }
    made.forward = place("weights", forward.at, forward.words)
    made.backward = place("weights", group.at, group.words)
    made.gradient, made.dz = place("sums", group.first * tensor, tensor), place("dz", group.first * floats, floats)
    for number = 1, 3 do
        local stage, calls = forward.stages[number], {}
        for i, q in ipairs(stage.products) do
            local x = { inputs[number], q.first_block * q.x_stride, q.x_stride }
            calls[i] = product(q, tile, "forward", x, { inputs[number + 1], q.first_block * q.outputs, q.outputs })
        end
        made.again[number] = { number = number, to = inputs[number + 1], calls = calls, passes = stage.passes }
    end
    for number = 4, 1, -1 do
        local stage, from, to = group.stages[number], made.dx, number % 2 == 0 and "da" or "db"
        local calls = calls_of(stage, tile, "backward", from, to, "gradient")
        local one = { number = number, input = inputs[number], rows = stage.rows, from = from, calls = calls }
        one.passes, made.dx = stage.passes, to
        table.insert(made.stages, one)
    end
    return made
end

-- Of the way back `back` through the projection of a layer of `shape`, in tiles of `tile` tokens: the calls of a dense
-- one, and the groups of repeats of a BH4 projection.
return function(back, shape, tile)
    local groups = {}
    for i, group in ipairs(back.groups) do
        groups[i] = group_of(group, shape, tile)
    end
    return { calls = calls_of(back, tile, "weights", "dz", "dx_tile", "sums"), groups = groups }
end
