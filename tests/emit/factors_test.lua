-- Factors and divisors of 1, zeros that are added, and multiples of 0 are dropped from emitted C; nothing else changes.
local check = require "tests.support.check"
local factors = require "gen.print.factors"

local test = {}

function test.factors_of_1_are_dropped()
    for given, expected in pairs {
        ["x + token * 1"] = "x + token",
        ["x[i * 1 + 1]"] = "x[i + 1]",
        ["code + (first + 8) * 1,"] = "code + (first + 8),",
        ["f((uintptr_t) table + i / 2 * 1, y)"] = "f((uintptr_t) table + i / 2, y)",
        ["z[(bit - 1) * 1]"] = "z[bit - 1]",
        ["f(x, (first + 8) * 1)"] = "f(x, first + 8)",
        ["z[(i < n ? i : n) * 1]"] = "z[(i < n ? i : n)]",
        ["x = 1 * token;"] = "x = token;",
        ["n = (some + 0) / 1;"] = "n = some;",
        ["next + token / 1 * depth"] = "next + token * depth",
        ["x + 1 * (first + 8)"] = "x + (first + 8)",
        ["x[0 * WIDTH + i];"] = "x[i];",
        ["x + 0 * (n + 8);"] = "x;",
        ["x[token * step + 0 * 5 / 32 + i];"] = "x[token * step + i];",
        ["2 - 0 < 32 ? 2 - 0 : 32;"] = "2 < 32 ? 2 : 32;",
        ["y[(token + 0) * step + 1]"] = "y[token * step + 1]",
    } do
        check.equal(factors.dropped(given), expected)
    end
end

function test.all_else_stays()
    for _, text in ipairs {
        "x * 16 + 1",
        "x * 1.0f",
        "2.1 * x",
        "y - 1 * x",
        "1 / x + 10 * y - 0.0f",
        "f(0, 1) + 100 % x",
        "x + 0.5f + 0x10 / 1.5f",
        "/* x * 1 */ f(); /* 1 * x */",
        "x1 * 10",
    } do
        check.equal(factors.dropped(text), text)
    end
end

return test
