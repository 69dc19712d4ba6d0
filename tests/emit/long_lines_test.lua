-- Lines of emitted C that are too long are broken where a reader expects it; nothing else changes.
local check = require "tests.support.check"
local comments = require "gen.print.comments"
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

-- Each line stands as deep as the brackets that are open before it.
function test.continued_lines_show_their_depth()
    local long = ("x"):rep(60)
    local text = "    store(v, fma(" .. long .. ", b, add(" .. long .. ", c)), d);\n"
    check.equal(
        broken(text),
        "    store(v,\n        fma(" .. long .. ", b,\n            add(" .. long .. ", c)),\n        d);\n"
    )
    local call = "f(g(" .. long .. ", " .. long .. "), " .. long .. ")"
    check.equal(
        broken("    const int y = " .. call .. ";\n"),
        "    const int y = f(\n        g(" .. long .. ",\n            " .. long .. "),\n        " .. long .. ");\n"
    )
end

function test.products_and_comparisons_break_before_the_operator()
    local long = ("x"):rep(50)
    local text = long .. " * " .. long .. " / " .. long
    check.equal(
        broken("    y = " .. text .. ";\n"),
        "    y = " .. long .. " * " .. long .. "\n        / " .. long .. ";\n"
    )
    check.equal(
        broken("    if (f(" .. long .. ", a) != g(" .. long .. ", b + c, d))\n"),
        "    if (f(" .. long .. ", a)\n        != g(" .. long .. ", b + c, d))\n"
    )
    check.equal(
        broken("    " .. long .. " = " .. long .. " + " .. long .. ";\n"),
        "    " .. long .. "\n        = " .. long .. " + " .. long .. ";\n"
    )
end

-- A template breaks them where it likes; comments and lists keep their lines.
function test.arguments_are_joined_before_lines_break()
    check.equal(broken "    f(a,\n        b,\n      c);\n    g();\n", "    f(a, b, c);\n    g();\n")
    local long = ("x"):rep(60)
    check.equal(
        broken("void f(int a,\n    int " .. long .. ", int " .. long .. ")\n{\n"),
        "void f(int a, int " .. long .. ",\n    int " .. long .. ")\n{\n"
    )
    local text = "/* Of f(a,\n   b). */\nint x[] = {\n    f(a),\n    (b),\n};\n#define G(a, \\\n    b)\n"
    check.equal(broken(text), text)
end

function test.conditions_of_the_preprocessor_break_with_a_backslash()
    local text = "#if " .. ("defined(__A__) && "):rep(8) .. "defined(__B__)\n"
    check.matches(broken(text), "^#if [^\n]+ \\\n    && defined")
    check.equal(marks(broken(text):gsub("\\\n", "")), marks(text))
end

function test.comments_are_filled_as_paragraphs()
    check.equal(
        comments.filled "/* All parts of\n   a\n   step may run. */\nint a; /* b */\n",
        "/* All parts of a step may run. */\nint a; /* b */\n"
    )
    check.equal(comments.filled "/* It ends.\n   Cannot fail. */\n", "/* It ends.\n   Cannot fail. */\n")
    local sentence = ("word "):rep(23) .. "ends."
    check.equal(comments.filled("/* " .. sentence .. "\n   More. */\n"):match "\n.*", "\n   ends. More. */\n")
    local words = ("word "):rep(40)
    local out = comments.filled("/* " .. words .. "*/\n")
    check.equal(marks(out), marks("/* " .. words .. "*/"))
    check.equal(out:match "[^\n]*", "/* " .. ("word "):rep(23):sub(1, -2))
    check.matches(out, "\n   word")
end

function test.empty_lines_of_comments_stay()
    local words = ("word "):rep(23)
    local text = "/* " .. words .. "word. All are.\n\n     int x;\n\n   End. */\n"
    check.equal(
        comments.filled(text),
        "/* " .. words:sub(1, -2) .. "\n   word. All are.\n\n     int x;\n\n   End. */\n"
    )
end

function test.rows_that_follow_each_other_line_up()
    check.equal(
        comments.filled "/* Rows:\n   z  of\n   code  the\n   None. */\n",
        "/* Rows:\n   z     of\n   code  the\n   None. */\n"
    )
end

-- Names and what they mean go on below the latter; code stays as it is.
function test.rows_and_code_of_comments_keep_their_columns()
    local words = ("word "):rep(40)
    local rows = "   scratch  " .. words .. "\n   y        [2]  of\n            them\n"
    local out = comments.filled("/* rows:\n" .. rows .. "     call(x);\n   None. */\n")
    check.matches(out, "\n   scratch  word")
    check.matches(out, "\n            word")
    check.matches(out, "\n   y        %[2%]  of them\n     call%(x%);\n   None%. %*/\n$")
end

function test.a_long_comment_behind_code_goes_above_it()
    local words = ("word "):rep(22)
    check.equal(comments.filled("#define A 1 /* " .. words .. "*/\n"), "/* " .. words .. "*/\n#define A 1\n")
    local text = "    put(\"/* " .. words .. words .. "*/\");\n"
    check.equal(comments.filled(text), text)
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
