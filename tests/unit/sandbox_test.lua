-- A file of data can hold anything, also an attack; it gives plain data or one clear line.

local check = require "tests.support.check"
local host = require "host"
local process = require "process"
local sandbox = require "sandbox"

local path = process.temporary_directory() .. "/data.lua"

local function load(source)
    assert(host.write_file(path, source))
    return sandbox.load(path)
end

local function fails(rule, source) check.fails_with(path .. rule, load, source) end

local test = {}

function test.data_comes_back_as_a_copy_with_the_source()
    local source =
        'local n = 4\nreturn { name = "x", d = n * 16, eps = 1e-5, on = true, list = { 1, 2.5, { "deep" } }, [7] = -1 }'
    local data, text = load(source)
    check.equal(data, { name = "x", d = 64, eps = 1e-5, on = true, list = { 1, 2.5, { "deep" } }, [7] = -1 })
    check.equal(text, source)
end

function test.shared_tables_become_separate()
    local data = load "local t = { 1 } return { a = t, b = t }"
    data.a[1] = 2
    check.equal(data.b[1], 1)
end

-- Writes files beside the loaded one.
local function beside(files)
    assert(host.write_directory((path:gsub("/[^/]*$", "")), files))
    return path:match "^.*/"
end

function test.a_file_includes_others_from_its_folder()
    local folder = beside {
        ["base.lua"] = 'local m = { d = 8, norm = include "parts/norm.lua" } return m',
        ["parts/norm.lua"] = 'return include "eps.lua"',
        ["parts/eps.lua"] = "return { eps = 1 }",
    }
    local data, _, included = load 'local m = include "base.lua"\nm.h = 2\nreturn m'
    check.equal(data, { d = 8, h = 2, norm = { eps = 1 } })
    local paths = {}
    for i, file in ipairs(included) do
        paths[i] = file.path:sub(#folder + 1)
    end
    check.equal(paths, { "base.lua", "parts/norm.lua", "parts/eps.lua" })
    check.equal(included[3].source, "return { eps = 1 }")
    check.equal(select(3, load "return {}"), {})
end

function test.wrong_includes()
    local folder = beside {
        ["bad.lua"] = "return {\n a b }",
        ["name.lua"] = "\n\nreturn { a = b }",
        ["number.lua"] = "return 1",
        ["loop.lua"] = "while true do end",
        ["data.lua"] = "return {}",
        ["binary"] = "\27Lua",
    }
    for _, name in ipairs { "/etc/hostname", "../data.lua", "a/../../b", "..", "" } do
        fails(':1: include "' .. name .. '": must be a relative path without ..', 'return include "' .. name .. '"')
    end
    fails(":1: include: " .. folder .. "none: No such file or directory", 'return include "none"')
    fails(":1: include: " .. folder .. "binary: is binary: must be a text", 'return include "binary"')
    fails(
        ":1: include: " .. folder .. "number.lua: must return one table, returned number",
        'return include "number.lua"'
    )
    fails(':1: include "data.lua": more than 16 files are included', 'return include "data.lua"')
    for name, rule in pairs {
        ["bad.lua"] = ":2: '}' expected (to close '{' at line 1) near 'b'",
        ["name.lua"] = ":3: unknown name 'b'",
        ["loop.lua"] = ":1: took more than 10000000 instructions",
    } do
        check.fails_with(folder .. name .. rule, load, 'return include "' .. name .. '"')
    end
end

function test.infinite_loop()
    fails(":1: took more than 10000000 instructions", "while true do end")
    fails(":2: took more than 10000000 instructions", "local function f()\n return f() end return f()")
end

function test.allocation_without_end()
    fails(
        ": needs more than 16 MiB",
        "local t = {} for i = 1, 1e9 do t[i] = {} \z
    end"
    )
end

function test.doubled_string() fails(": needs more than 16 MiB", 'local s = "x" while true do s = s .. s end') end

function test.few_instructions_that_copy_much()
    fails(
        ":1: took more than 2 seconds",
        'local s = "x" for i = 1, 22 do s = s .. s end while true do local t = s .. "y" end'
    )
end

function test.recursion_without_end()
    fails(": needs more than 16 MiB", "local function f() return 1 + f() end return f()")
end

function test.compiled_code() fails(": is compiled Lua: must be text", string.dump(assert(_ENV.load "return {}"))) end

function test.no_libraries()
    local names = "os io package require debug string table math print pcall load setmetatable getmetatable _G rawget \z
            collectgarbage"
    for name in names:gmatch("%S+") do
        fails((":1: unknown name '%s'"):format(name), "return " .. name .. " and {}")
    end
    fails(":1: attempt to index a string value", 'return { ("x"):rep(9) }')
end

function test.misspelt_name_is_not_nil() fails(":2: unknown name 'widht'", "local width = 4\nreturn { d = widht }") end

function test.what_must_be_returned()
    fails(": must return one table, returned nothing", "local x = 1")
    fails(": must return one table, returned nil", "return nil")
    fails(": must return one table, returned number", "return 5")
    fails(": must return one table, returned several values", "return {}, {}")
    fails(": norm.f: is a function", "return { norm = { f = function() end } }")
    fails(": list: has a key that is neither", "return { list = { [1.5] = 1 } }")
    fails(": list[2]: has a key that is neither", "return { list = { 1, { [true] = 1 } } }")
end

function test.cycles_and_depth()
    fails(": has tables nested more than 64 deep, or inside themselves", "local t = {} t.t = t return t")
    fails(
        ": has tables nested more than 64 deep, or inside themselves",
        "local t = {} for i = 1, 1000 do t = { t } end return t"
    )
    fails(": C stack overflow", "return " .. ("{"):rep(100000))
end

function test.small_source_of_a_huge_result()
    fails(": returns more than 16 MiB", "local t = {} for i = 1, 40 do t = { t, t } end return t")
    fails(
        ": returns more than 16 MiB",
        'local s = "x" for i = 1, 20 do s = s .. s end local t = {} for i = 1, 99 do t[i] = s end return t'
    )
end

function test.syntax_errors_carry_the_line_and_are_one_line()
    fails(":3: ", "return {\n d = 4\n h = 5 }")
    fails(":1: ", 'return { "abc\n" }')
    fails(": is binary: must be a text", "return { \1\0 }")
end

function test.long_paths_are_shown_whole()
    local folder = path:gsub("data.lua$", ("long"):rep(30))
    assert(host.write_directory(folder, { ["m.lua"] = "return {" }))
    check.fails_with(folder .. "/m.lua:1: ", sandbox.load, folder .. "/m.lua")
end

function test.files_that_cannot_be_read()
    check.fails_with("none.lua: No such file or directory", sandbox.load, "none.lua")
    check.fails_with("/tmp: Is a directory", sandbox.load, "/tmp")
    check.fails_with("/dev/zero: is larger than 1048576 bytes", sandbox.load, "/dev/zero")
end

return test
