-- Activations for outputs that are rounded next: half of x, and a share of |x|, which a table of 32 cubics gives.
local literal = require "gen.print.literal"

local activation_table = {}

-- The normal distribution function, by its series.
local function normal(x)
    local term, sum, n = x, x, 1
    while math.abs(term) > 1e-20 do
        n = n + 2
        term = term * x * x / n
        sum = sum + term
    end
    return 0.5 + sum * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
end

local function logistic(x) return 1 / (1 + math.exp(-x)) end

-- By activation: the share of x that it keeps, which is symmetric around 1/2; from what |x| on that counts as 1 or 0;
-- how far the table's results are off at most, in parts of |x|.
local shares = {
    gelu = { of = normal, reach = 5.25, error = "3e-7" },
    gelu_tanh = {
        of = function(x) return logistic(math.sqrt(8 / math.pi) * (x + 0.044715 * x ^ 3)) end,
        reach = 5.25,
        error = "3e-7",
    },
    silu = { of = logistic, reach = 16, error = "3.3e-6" },
}

-- The cubic through f at the zeros of a Chebyshev polynomial between `from` and `to`: coefficients, that of 1 first.
local function cubic(f, from, to)
    local x, divided = {}, {}
    for k = 1, 4 do
        x[k] = (from + to) / 2 + (to - from) / 2 * math.cos((k - 0.5) * math.pi / 4)
        divided[k] = f(x[k])
    end
    for order = 1, 3 do
        for k = 4, order + 1, -1 do
            divided[k] = (divided[k] - divided[k - 1]) / (x[k] - x[k - order])
        end
    end
    local c = { divided[4], 0, 0, 0 }
    for k = 3, 1, -1 do -- times x - x[k], and divided[k] more
        for power = 4, 2, -1 do
            c[power] = c[power - 1] - x[k] * c[power]
        end
        c[1] = divided[k] - x[k] * c[1]
    end
    return c
end

-- The table of the activation of that name, nil: it needs none. Number k of 32, from 0 on, is for |x| nearest to k
-- steps. { bound: of |x|, by_step: 1 over the step, coefficients: four lists of 32, of 1, |x|, its square and cube, C
-- literals; error }.
function activation_table.of(name)
    local share = shares[name]
    if not share then return nil end
    local step = share.reach / 30.5
    local t = { coefficients = { {}, {}, {}, {} }, error = share.error }
    local function gain(x) return share.of(x) - 0.5 end
    for k = 0, 31 do
        local own = k == 31 and { 0.5, 0, 0, 0 } or cubic(gain, (k - 0.5) * step, (k + 0.5) * step)
        for power, list in ipairs(t.coefficients) do
            -- Rounded, so that every C library's exp gives the same; never -0.0.
            list[k + 1] = literal.float(tonumber(("%.11f"):format(own[power])) + 0.0)
        end
    end
    t.bound, t.by_step = literal.float(31 * step), literal.float(1 / step)
    return t
end

return activation_table
