-- Loops of one turn are printed as their turn; others stay.
local check = require "tests.support.check"
local turns = require "gen.print.turns"

local test = {}

-- Without indentation and breaks of lines.
local function plain(text) return (text:gsub("%s+", " "):gsub("^ ", ""):gsub(" $", "")) end

local function unrolled(text) return plain(turns.unrolled("{\n" .. text .. "\n}\n")):match "^{ (.*) }$" end

function test.loops_of_one_turn_are_their_turn()
    local once, rows = "for (size_t i = 0; i < 1; ++i)", "for (size_t k = 0; k < n; ++k)"
    for given, expected in pairs {
        [once .. "\n    y[i] = x[i].i + a->i; /* i */"] = "y[0] = x[0].i + a->i; /* i */",
        ["for (size_t i = 8; i < 16; i += 8)\n    f(i);"] = "f(8);",
        [once .. " {\n    f(i);\n    g(i);\n}"] = "f(0); g(0);",
        [once .. " {\n    const int n = i;\n    f(n);\n}"] = "{ const int n = 0; f(n); }",
        ["for (size_t i = 0; i < 1; ++i, y += 8, ++s) {\n    f(i);\n}"] = "f(0); y += 8; ++s;",
        [rows .. "\n    " .. once .. " {\n        f(i);\n        g(k);\n    }"] = rows .. " { f(0); g(k); }",
        [once .. "\nfor (size_t k = 0; k < 2; k += 2)\nif (i < k)\nf(i);\nelse\ng(k);"] = "if (0 < 0) f(0); else g(0);",
    } do
        check.equal(unrolled(given), expected)
    end
end

function test.other_loops_stay()
    for _, text in ipairs {
        "for (size_t i = 0; i < 2; ++i) f(i);",
        "for (size_t i = 0; i < 17; i += 16) f(i);",
        "for (size_t i = 0; i < n; i += 16) f(i);",
        "for (size_t i = 0; i < 0; ++i) f(i);",
        "for (size_t i = 0; i < 1; ++k) f(i);",
        "for (size_t i = 0; i < 1; ++i) { if (x) break; f(i); }",
        "for (size_t i = 0; i < 1; ++i) { if (x) continue; f(i); }",
    } do
        check.equal(unrolled(text), text)
    end
    local shared = "#pragma omp parallel for\nfor (size_t i = 0; i < 1; ++i)\n    f(i);\n"
    check.equal(turns.unrolled(shared), shared)
end

return test
