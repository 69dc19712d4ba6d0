-- What training's way back through a projection calls, block by block, and where its repeats have their numbers.
local expression = require "gen.isa.expression"

local sum, times = expression.sum, expression.times

-- Where, in C, a turn of a loop finds something: `first` elements behind `base`, and `step` more in each turn.
local function place(base, first, step)
    return function(turn) return sum(base, first, times(turn, step)) end
end

-- What the parts of a way back through a projection of `shape` have in common: { shape, constant: the name of a
-- constant, rows(base, row, stride): a place in tiles }.
local function context_of(shape, tile, constant, of_tile)
    local c = { shape = shape, constant = constant }
    function c.rows(base, row, stride) return place(base, of_tile(row * tile), of_tile(stride * tile)) end
    return c
end

-- Where the weights of product `q` of `products` of stage `number` begin, or of a dense projection, among those of a
-- repeat: forward and backward have as many.
local function words_at(c, q, products, number)
    local behind = q.offset - products[1].offset
    if not number then return sum(c.constant "TRAIN_BACKWARD_AT", behind) end
    if number == 1 then return behind > 0 and c.constant "W1_REST_AT" or 0 end
    return sum(c.constant("W" .. number .. "_AT"), behind)
end

-- The call of the block product `q`, whose weights lie at `at` in `weights`, { name, count: of its blocks,
-- arguments(block) }; x, y: { buffer, row of the first block, rows from block to block }.
local function product(c, q, weights, at, x, y)
    local from, to = c.rows(table.unpack(x)), c.rows(table.unpack(y))
    local block_weights = place(weights, at, q.depth .. " * " .. q.outputs)
    local function arguments(block)
        return table.concat({ from(block), 0, block_weights(block), to(block), 0, 1 }, ", ")
    end
    return { name = q.name, count = q.count, arguments = arguments }
end

-- The calls of the way back through `of`, { outer, products }, stage `number` or a dense projection: sums of the
-- weights' gradients, from the gradients `dy` of outputs and `turned` to `gradient`; and products, which take `dy` to
-- `dx`.
local function calls_of(c, of, number, weights, dy, dx, gradient)
    local calls, shape = {}, c.shape
    for _, o in ipairs(of.outer) do
        local from, turned = c.rows(dy, o.y_row, o.y_stride), place("turned", o.x_row, o.x_stride)
        local to = place(gradient, o.at, o.block)
        if number then
            local tensors = times(number - 1, c.constant "TRAIN_W_FLOATS")
            local behind = o.at - (number - 1) * shape.padded * shape.block
            to = place(sum(gradient, tensors), behind, shape.block .. " * " .. shape.block)
        end
        local function arguments(block) return table.concat({ from(block), turned(block), to(block) }, ", ") end
        calls[#calls + 1] = { name = o.name, count = o.count, arguments = arguments }
    end
    for _, q in ipairs(of.products) do
        local x, y = { dy, q.x_row, q.x_stride }, { dx, q.y_row, q.y_stride }
        calls[#calls + 1] = product(c, q, weights, words_at(c, q, of.products, number), x, y)
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
local function group_of(c, group)
    local shape, first, inputs = c.shape, group.first, { "x_tile", "a", "b", "c" }
    local made = { count = group.count, residual_rows = group.residual_rows, again = {}, stages = {}, dx = "dy4" }
    local function of_repeat(base, each) return place(base, times(first, each), each) end
    local words = shape.repeats > 1 and c.constant "REPEAT_WORDS" or 0
    made.forward = of_repeat("weights", words)
    made.backward = of_repeat("weights + " .. c.constant "TRAIN_BACKWARD_AT", words)
    made.gradient = of_repeat("sums", "4 * " .. c.constant "TRAIN_W_FLOATS")
    made.dz = c.rows("dz", first * shape.padded, shape.padded)
    for number = 1, 3 do
        local stage, calls = group.forward.stages[number], {}
        for i, q in ipairs(stage.products) do
            local x = { inputs[number], q.first_block * q.x_stride, q.x_stride }
            local y = { inputs[number + 1], q.first_block * q.outputs, q.outputs }
            calls[i] = product(c, q, "forward", words_at(c, q, stage.products, number), x, y)
        end
        made.again[number] = { number = number, to = inputs[number + 1], calls = calls, passes = stage.passes }
    end
    for number = 4, 1, -1 do
        local stage, from, to = group.stages[number], made.dx, number % 2 == 0 and "da" or "db"
        local calls = calls_of(c, stage, number, "backward", from, to, "gradient")
        local one = { number = number, input = inputs[number], rows = stage.rows, from = from, calls = calls }
        one.passes, made.dx = stage.passes, to
        table.insert(made.stages, one)
    end
    return made
end

-- Of the way back `back` through the projection of a layer of `shape`, in tiles of `tile` tokens: the calls of a dense
-- one, and the groups of repeats of a BH4 projection. constant, of_tile: names of constants and places in tiles in C.
return function(back, shape, tile, constant, of_tile)
    local c, groups = context_of(shape, tile, constant, of_tile), {}
    for i, group in ipairs(back.groups) do
        groups[i] = group_of(c, group)
    end
    return { calls = calls_of(c, back, nil, "weights", "dz", "dx_tile", "sums"), groups = groups }
end
