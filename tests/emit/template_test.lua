-- Templates print what they say, and every mistake in one carries the template's path and line.
local check = require "tests.support.check"
local host = require "host"
local template = require "gen.print.template"

local path = "templates/test.c"

local function rendered(text, values, more) return template.render(template.compile(text, path), values, more) end

local function gives(text, values, expected)
    local good, output = pcall(rendered, text, values)
    if not good then error(output, 2) end
    if output ~= expected then error(string.format("got %q, expected %q", output, expected), 2) end
end

local function fails(message, text, values)
    local good, actual = pcall(rendered, text, values or {})
    if good then error(string.format("got %q, expected a failure", actual), 2) end
    if actual ~= path .. ":" .. message then
        error(string.format("got %q, expected %q", actual, path .. ":" .. message), 2)
    end
end

local test = {}

function test.text_passes_unchanged()
    for _, text in ipairs {
        "\n",
        "int x;\n",
        "\n\n  a\tb \n\n",
        "a $ b (c) $d %s %d %%\n",
        "\"quoted\" 'c' \\n \\\\ [[x]] ]==]\n",
        "ends with \\\n  next\n",
        "é ü …\n",
        "\r\n",
        "\0\1\27\n",
        "// $ x\n",
        "/*$ x */\n",
    } do
        gives(text, {}, text)
    end
end

function test.a_last_line_without_newline_gets_one()
    gives("a", {}, "a\n")
    gives("a\nb", {}, "a\nb\n")
end

function test.substitutions()
    gives("$(x)\n", { x = "text" }, "text\n")
    gives("float v[$(n)]; /* $(name) */\n", { n = 16, name = "v" }, "float v[16]; /* v */\n")
    gives("$(a)$(b)$(a)\n", { a = 1, b = "" }, "11\n")
    gives("$$(a)$\n", { a = 1 }, "$1$\n")
    gives(
        "$(a * 2 + 1) $(t.name) $(f(a))\n",
        { a = 3, t = { name = "n" }, f = function(n) return n + 1 end },
        "7 n 4\n"
    )
    gives("$(-9223372036854775807 - 1)\n", {}, "-9223372036854775808\n")
end

function test.what_is_substituted_is_not_read_again()
    gives("$(x)\n//$ -- $(x)\n", { x = "$(y) //$ z\n%s" }, "$(y) //$ z\n%s\n")
end

function test.parentheses_nest()
    gives("$((a + (b)) * ((2))) f(x)\n", { a = 1, b = 2 }, "6 f(x)\n")
    gives("f($(g(g(a))))$(a))\n", { a = 1, g = function(n) return n * 10 end }, "f(100)1)\n")
end

function test.lua_lines()
    gives("//$ for i = 1, 3 do\nx$(i)\n//$ end\n", {}, "x1\nx2\nx3\n")
    gives("a\n   //$ if on then\nb\n\t//$ else\nc\n//$end\n", { on = false }, "a\nc\n")
    gives("//$ local twice = n * 2 -- a comment\n$(twice)\n//$ n = 5\n$(n)\n", { n = 4 }, "8\n5\n")
end

function test.a_lua_line_prints_nothing() gives("//$ local x = 1\n", {}, "") end

function test.a_condition_behind_a_line()
    local text = "a\n  int b; //$ if on\nc\n"
    gives(text, { on = true }, "a\n  int b;\nc\n")
    gives(text, { on = false }, "a\nc\n")
    gives("$(n) \t //$if n > 1 and n < 3\n", { n = 2 }, "2\n")
    gives("int a; /* why */ //$ if on\n", { on = true }, "int a; /* why */\n")
    gives("#define A \\ //$ if on\n    1\n", { on = true }, "#define A \\\n    1\n")
    gives("//$ if n > 1 then\nb //$ if n > 2\n//$ end\n", { n = 3 }, "b\n")
end

function test.a_loop_behind_a_line()
    gives("x$(n); //$ for n = 0, 2\n", {}, "x0;\nx1;\nx2;\n")
    gives("x$(i)$(v); //$ for i, v in ipairs(list)\n", { list = { "a", "b" } }, "x1a;\nx2b;\n")
    gives("x$(n); //$ for n = 1, 0\n", {}, "")
    local nested = "x$(r)$(c); //$ for r = 0, 1 for c = 0, 2 if c ~= r\n"
    gives(nested, {}, "x01;\nx02;\nx10;\nx12;\n")
    gives("x$(n); //$ if on for n = 0, 1\n", { on = true }, "x0;\nx1;\n")
    gives("x$(n); //$ if on for n = 0, 1\n", { on = false }, "")
end

function test.words_in_names_and_strings_begin_no_condition()
    gives("a //$ if kind == \"if for\" and other ~= '\"for \\' if'\n", { kind = "if for", other = "" }, "a\n")
    gives("a //$ if t.notif and formed and x_for\n", { t = { notif = true }, formed = true, x_for = 1 }, "a\n")
end

function test.a_wrong_condition_carries_path_and_line()
    local behind = "//$ behind a line: "
    for suffix, message in pairs {
        ["not a condition"] = "what stands there begins with if or for",
        [""] = "what stands there begins with if or for",
        ["x = 1 if on"] = "what stands there begins with if or for",
        ["end"] = "no end stands there",
        ["if on then"] = "no then stands there",
        ["for n = 1, 2 do"] = "no do stands there",
        ["if on -- a comment"] = "no comment stands there",
        ["if f(function() end)"] = "no function stands there",
        ['if x == "a'] = "a string is not closed",
    } do
        fails("2: " .. behind .. message, "a\nint b; //$ " .. suffix .. "\nc\n", { on = true })
    end
    fails("3: unexpected symbol near 'then'", "a\nb\nc //$ if on ==\n")
    fails("2: '=' or 'in' expected near 'do'", "a\nb //$ for n\n")
    fails("2: unknown name 'on'", "a\nb //$ if on\n")
    fails("2: attempt to index a nil value (field 'y')", "a\nb //$ if x.y.z\n", { x = {} })
    fails("2: attempt to index a nil value (field 'y')", "a\nb$(x.y.z) //$ for n = 1, 2\n", { x = {} })
    fails("2: $( is not closed on this line", "a\nb$(x //$ if on\n", { on = true })
end

function test.what_a_condition_names_is_used()
    gives("//$ takes on\na //$ if on\n", { on = true }, "a\n")
    fails("1: takes on: is declared, but not used", "//$ takes on\na /* on */\n")
end

function test.template_functions_print_where_they_are_called()
    gives("//$ local function row(n)\n  r$(n);\n//$ end\na\n//$ row(1)\nb\n//$ row(2)\n", {}, "a\n  r1;\nb\n  r2;\n")
end

function test.lists_of_lines()
    gives("{\n//$ lines(list)\n}\n", { list = { "a", "", "  b" } }, "{\na\n\n  b\n}\n")
    gives("//$ lines {}\n", {}, "")
end

function test.a_loop_of_one_turn_is_none()
    local text = "//$ loop('i', from, 8, 4, function(at)\nf($(at));\n//$ end)\n"
    gives(text, { from = 0 }, "for (size_t i = 0; i < 8; i += 4)\nf(i);\n")
    gives(
        "//$ loop('i', 0, n, 1, function(at)\nf($(at));\ng();\n//$ end)\n",
        { n = 2 },
        "for (size_t i = 0; i < 2; ++i) {\nf(i);\ng();\n}\n"
    )
    gives(text, { from = 4 }, "f(4);\n")
    gives(text, { from = 8 }, "")
end

function test.a_loop_takes_names_of_its_bounds_and_more()
    local text = "//$ loop('i', from, 8, 4, function(at)\nconst int j = $(at);\nf(j);\n//$ end, more)\n"
    gives(
        text,
        { from = 0, more = { from = "LOW", to = "HIGH", type = "int", also = ", ++p" } },
        "for (int i = LOW; i < HIGH; i += 4, ++p) {\nconst int j = i;\nf(j);\n}\n"
    )
    gives(text, { from = 0, more = { braces = false } }, "for (size_t i = 0; i < 8; i += 4)\nconst int j = i;\nf(j);\n")
    gives(text, { from = 4, more = { from = "LOW", block = true } }, "{\nconst int j = LOW;\nf(j);\n}\n")
    gives(text, { from = 4, more = { also = ", ++p" } }, "const int j = 4;\nf(j);\n")
end

function test.a_row_ends_with_what_fills_no_vector()
    local text = "//$ over_row(count, function(at, load, store)\n$(store('y', at, load('x', at)));\n//$ end)\n"
    local function word(name)
        return function(...) return name .. "(" .. table.concat({ ... }, ", ") .. ")" end
    end
    local isa = { lanes = 4 }
    for _, name in ipairs { "load_unaligned", "store_unaligned", "load_partial", "store_partial" } do
        isa[name] = word(name)
    end
    local whole, rest = "store_unaligned(y, i, load_unaligned(x, i))", "store_partial(y, 8, 2, load_partial(x, 8, 2))"
    local loop = "for (size_t i = 0; i < 8; i += 4)\n" .. whole .. ";\n"
    gives(text, { count = 8, isa = isa }, loop)
    gives(text, { count = 10, isa = isa }, loop .. rest .. ";\n")
    gives(text, { count = 2, isa = isa }, "store_partial(y, 0, 2, load_partial(x, 0, 2));\n")
end

function test.a_block_of_one_line_has_no_braces()
    local text = "//$ block(function()\nf();\ng(); //$ if more\n//$ end)\n"
    gives(text, { more = false }, "f();\n")
    gives(text, { more = true }, "{\nf();\ng();\n}\n")
end

function test.lists_leave_out_what_is_false()
    gives("f($(listed('a', more, 'b', 1)))\n", { more = false }, "f(a, b, 1)\n")
end

function test.wrong_lua_carries_path_and_line()
    fails("2: syntax error near '='", "a\n//$ = 3\n")
    fails("3: unexpected symbol near ')'", "a\n//$ local x = 1\n$(x +)\n")
    fails("2: 'end' expected (to close 'for' at line 1) near <eof>", "//$ for i = 1, 2 do\n$(i)\n")
    fails("1: <eof> expected near 'end'", "//$ end\n")
end

function test.failures_while_rendering_carry_path_and_line()
    fails("3: attempt to perform arithmetic on a nil value (field 'y')", "a\n\n$(x.y + 1)\n", { x = {} })
    fails("2: text of the template", 'a\n//$ error("text of the template")\nb\n')
    fails("4: attempt to index a nil value (field 'x')", "//$ local f = 'x'\n\\\nb\n//$ f.x.y = 1\n")
end

function test.one_template_line_is_one_chunk_line()
    local lines = { "a\\", '"\\', "[[", "$(1) \\", "//$ local t = { 1 }", "", "\r", "//$ -- [[", "]] $(t[1])", "\\\\" }
    lines[#lines + 1] = "x //$ for n = 1, 2"
    for at = 1, #lines do
        local copy = table.move(lines, 1, #lines, 1, {})
        table.insert(copy, at, "$(missing)")
        fails(at .. ": unknown name 'missing'", table.concat(copy, "\n"))
    end
end

function test.unknown_names()
    fails("1: unknown name 'widht'", "$(widht)\n", { width = 1 })
    fails("2: unknown name 'call'", "a\n//$ call()\n")
    gives("$(tostring(off))\n", { off = false }, "false\n")
end

function test.only_strings_and_integers_are_substituted()
    local takes = ": $(…) takes a string or an integer, got a "
    fails("1" .. takes .. "nil", "$(t.x)\n", { t = {} })
    fails("1" .. takes .. "nil", "$()\n")
    fails("2" .. takes .. "float", "\n$(x)\n", { x = 64.0 })
    fails("1" .. takes .. "float", "$(x / 2)\n", { x = 64 })
    fails("1" .. takes .. "table", "$(x)\n", { x = { 1 } })
    fails("1" .. takes .. "boolean", "$(1 == 1)\n")
    fails("1" .. takes .. "function", "$(f)\n", { f = function() end })
end

function test.a_substitution_that_is_not_closed()
    fails("2: $( is not closed on this line", "a\n  $(b\n)\n", { b = 1 })
    fails("1: $( is not closed on this line", "$(f(1)\n", { f = tostring })
    fails("3: $( is not closed on this line", "a\n\n$(1) $((2)\n")
end

function test.nothing_that_depends_on_time_order_or_the_machine()
    for name in
        (
            "pairs next os io math table string require package load loadfile dofile debug coroutine print warn pcall "
            .. "rawget rawset getmetatable setmetatable select collectgarbage _G"
        ):gmatch("%S+")
    do
        fails("1: unknown name '" .. name .. "'", "$(" .. name .. ")\n")
    end
    fails("1: tostring takes a string, a number or a boolean, got a table", "$(tostring({}))\n")
end

function test.values_of_the_caller_are_not_changed()
    local values = { n = 1 }
    gives("//$ n = 2\n//$ new = 3\n$(n)$(new)\n", values, "23\n")
    check.equal(values, { n = 1 })
    fails("1: unknown name 'new'", "$(new)\n", values)
end

-- A failure that concerns the template as a whole: there is no line.
local function refuses(message, text, values, more)
    local good, actual = pcall(rendered, text, values or {}, more)
    check.equal({ good, actual }, { false, path .. message })
end

function test.a_template_gets_what_it_declares()
    local text = "//$ takes width, name,\n//$ takes list\n$(name)[$(width)] $(#list)\n"
    gives(text, { width = 4, name = "v", list = {} }, "v[4] 0\n")
    gives(text, { width = 4, name = "v", list = {}, other = 1 }, "v[4] 0\n")
    refuses(": takes list, which it is not given", text, { width = 4, name = "v" })
    refuses(": takes list, which it is not given", text, {})
    gives("//$ takes on\n$(tostring(on))\n", { on = false }, "false\n")
end

function test.a_template_sees_nothing_that_it_does_not_declare()
    fails("2: unknown name 'other'", "//$ takes width\n$(width) $(other)\n", { width = 4, other = 1 })
    fails("2: unknown name 'width'", "//$ takes\n$(width)\n", { width = 4 })
    gives("//$ takes\n$(model) $(tostring(true))\n", { model = "tiny" }, "tiny true\n")
end

function test.what_is_given_to_one_template_alone_must_be_taken()
    local text = "//$ takes width\n$(width)\n"
    check.equal(rendered(text, { width = 4 }, { width = 4 }), "4\n")
    refuses(": is given strip, which it does not take", text, { width = 4, strip = 1 }, { width = 4, strip = 1 })
end

function test.a_declaration_means_something()
    fails("1: takes width: is declared, but not used", "//$ takes width\nwidth\n")
    fails("2: takes width: is declared twice", "//$ takes width\n//$ takes width\n$(width)\n")
    fails("1: takes shape: is there for every template", "//$ takes shape\n$(shape.d)\n")
    fails("1: takes 4: is not a name", "//$ takes 4\n")
    gives("a\n//$ local takes = 1\n//$ takes = 2\n$(takes)\n", {}, "a\n2\n")
end

function test.every_template_of_the_program_declares_what_it_takes()
    for _, name in ipairs(host.resources("templates/")) do
        if not name:find("/%.[^/]*$") and not template.compile(assert(host.resource(name)), name).takes then
            error(name .. ": does not declare what it takes", 0)
        end
    end
end

-- A constant that compilers must not know looks superfluous to readers.
function test.every_hidden_constant_says_which_library_call_it_prevents()
    local count = 0
    for _, name in ipairs(host.resources("templates/")) do
        for line in assert(host.resource(name)):gmatch "[^\n]+" do
            if line:find "%$hidden[%w_]*%(" and not line:find "^//%$" then
                count = count + 1
                check.matches(line:gsub(" //%$.*", ""), "; /%* else [^*]* mem%l+ ?[^*]*%*/$")
            end
        end
    end
    check.equal(count > 20, true)
end

function test.every_template_of_the_program_compiles()
    local count = 0
    for _, name in ipairs(host.resources("templates/")) do
        local good, message = pcall(template.render, template.compile(assert(host.resource(name)), name), {})
        -- With no values at all the first name is unknown: the template was compiled.
        local quoted = name:gsub("%p", "%%%0")
        if not good and not message:find("^" .. quoted .. ": takes [%w_]+, which it is not given$") then
            check.matches(message, "^" .. quoted .. ":%d+: unknown name '[%w_]+'$")
        end
        count = count + 1
    end
    check.equal(count > 5, true)
end

return test
