-- Expressions of C are simplified while they are built, and have no more parentheses than they need.
local check = require "tests.support.check"
local expression = require "gen.isa.expression"
local isa = require "gen.isa.list"

local scalar = isa.get "scalar"
local test = {}

-- Numbers are put together, and what adds or multiplies nothing is left out.
function test.expressions_are_simplified_while_they_are_built()
    local sum, times = expression.sum, expression.times
    for _, case in ipairs {
        { sum("p", 0), "p" },
        { sum(0, "i"), "i" },
        { sum(3, 4), 7 },
        { sum("p", 8, "i", 4), "p + 12 + i" },
        { sum("i + 4", 8), "i + 12" },
        { sum("p", times("head", 1), times("i", 0)), "p + head" },
        { sum("a ? b : c", 2), "(a ? b : c) + 2" },
        { expression.index("row + i", 0), "row[i]" },
        { times("head", 1), "head" },
        { times(1, "step"), "step" },
        { times("i", 0), 0 },
        { times(3, 4), 12 },
        { times(sum("head", 1), 4), "(head + 1) * 4" },
        { times("i * 4", 2), "i * 8" },
        { times("a", "b / c"), "a * (b / c)" },
        { expression.cast("int", "(int) (a + b)"), "(int) (a + b)" },
        { expression.cast("int", "(int) a + b"), "(int) ((int) a + b)" },
    } do
        check.equal(case[1], case[2])
    end
end

-- Parentheses stand where C needs them.
function test.expressions_have_the_parentheses_that_they_need()
    local cases = {
        { scalar.sub("a", scalar.sub("b", "c")), "a - (b - c)" },
        { scalar.sub(scalar.sub("a", "b"), "c"), "a - b - c" },
        { scalar.mul(scalar.add("a", "b"), "c[i + 1]"), "(a + b) * c[i + 1]" },
        { scalar.fma("a", "b", scalar.mul("c", "d")), "a * b + c * d" },
        { scalar.abs "a - b", "a - b < 0.0f ? -(a - b) : a - b" },
        { scalar.mul("-1.5e-3f", "x"), "-1.5e-3f * x" },
        { scalar.add("x", scalar.select("m", "a", "b")), "x + (m ? a : b)" },
        { scalar.add("(float) n", "f(a, b - c)"), "(float) n + f(a, b - c)" },
        { scalar.mul("x", "p->y"), "x * p->y" },
        { scalar.load("w + 3", "i"), "(w + 3)[i]" },
        { isa.get("avx2").prefetch_l1("row", 0), "_mm_prefetch((const char *) row, _MM_HINT_T0)" },
        { isa.get("avx2").prefetch_l1("row", 8), "_mm_prefetch((const char *) (row + 8), _MM_HINT_T0)" },
    }
    for _, case in ipairs(cases) do
        check.equal(case[1], case[2])
    end
end

return test
