-- Lines of emitted C that are too long are broken where a reader expects it; nothing else changes.
local check = require "tests.support.check"
local long_lines = require "gen.print.long_lines"

local test = {}

local function broken(text) return long_lines.broken(text) end

-- `text` without white space.
local function marks(text) return (text:gsub("%s+", "")) end

function test.short_lines_stay()
    local text = "int a;\n\n    /* x */\n#define LONG " .. ("word "):rep(60) .. "\n"
    check.equal(broken(text), text)
end

function test.code_breaks_behind_a_comma_of_the_least_depth()
    local inner = "inner(" .. ("a, "):rep(20) .. "b)"
    local text = "    call(" .. inner .. ", " .. inner .. ", last);\n"
    local lines = {}
    for line in broken(text):gmatch "[^\n]+" do
        lines[#lines + 1] = line
    end
    check.equal(lines, { "    call(" .. inner .. ",", "        " .. inner .. ", last);" })
end

function test.comments_break_between_words_below_their_text()
    local words = ("word "):rep(40)
    local out = broken("/* " .. words .. "*/\n")
    check.matches(out, "\n   word")
    check.equal(marks(out), marks("/* " .. words .. "*/"))
    check.matches(broken("/* rows:\n   scratch  " .. words .. "*/\n"), "\n            word")
end

function test.no_line_stays_too_long_and_strings_stay_whole()
    local text = '    put("' .. ("a, "):rep(30) .. '", ' .. ("value, "):rep(30) .. "last);\n"
    local out = broken(text)
    check.equal(marks(out), marks(text))
    check.matches(out, '"' .. ("a, "):rep(30) .. '"')
    for line in out:gmatch "[^\n]+" do
        check.equal(#line <= long_lines.width, true)
    end
end

return test
