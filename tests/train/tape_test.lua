-- The backward pass as data: each gradient of a value has one place, however many operations read the value.
local check = require "tests.support.check"
local tape = require "gen.families.model.training.tape"

local test = {}

function test.a_value_read_by_lookups_and_attention()
    local c = tape.new()
    local x = c.value("x", 8)
    local sum = x
    for i = 1, 3 do
        local y = c.add { op = "lookup", from = x, to = c.value("y", 8), parts = {} }
        sum = c.add { op = "add", a = sum, b = y, to = c.value("sum", 8) }
        if i == 2 then
            local attended = c.add { op = "attend", q = x, k = x, v = x, to = c.value("attended", 8) }
            sum = c.add { op = "add", a = sum, b = attended, to = c.value("sum", 8) }
        end
    end
    local back = tape.backward(c, x, sum)
    local names, added = {}, 0
    for _, gradient in ipairs(back.gradients) do
        check.equal(names[gradient.name], nil)
        names[gradient.name] = true
    end
    check.equal(names.d_x_too, true)
    for _, operation in ipairs(back.rows) do
        if operation.op == "sum" and operation.b == "d_x_too" then
            check.equal(operation.to, "d_in")
            added = added + 1
        end
    end
    check.equal(added, 3) -- the first to be passed writes d_in itself
end

return test
