-- Functions of Lua fit on a page, and have no more parameters than a reader keeps in mind.
local check = require "tests.support.check"
local host = require "host"
local process = require "process"

local test = {}

-- Files that may have more: flat lists of words.
local exceptions = "gen/isa/parts/sve_words.lua gen/isa/parts/x86.lua "

-- Calls use(head, lines, parameters) for each function in the text of a file, which stands as stylua formats it: a
-- function of several lines ends at its own indentation.
local function each_function(text, use)
    for at, parameters, behind in text:gmatch "()function[%w_.: ]*%(([^()]*)%)()" do
        local indentation = text:match("^%s*", text:sub(1, at):match ".*\n()" or 1)
        local last = text:find("^\n", behind) and text:find("\n" .. indentation .. "end%f[^%w_]", behind) or behind
        local lines = select(2, text:sub(behind, last):gsub("\n", ""))
        use(text:match("[^\n]*", at), lines, 1 + select(2, parameters:gsub(",", "")))
    end
end

-- The functions of `files` (text by path) that are too long, one a line.
local function too_long(files)
    local list = {}
    for path, text in pairs(files) do
        each_function(text, function(head, lines, parameters)
            if lines > 80 or parameters > 7 then
                list[#list + 1] = string.format("%s: %s: %d lines, %d parameters", path, head, lines, parameters)
            end
        end)
    end
    table.sort(list)
    return list
end

function test.functions_are_short()
    local files, found = {}, assert(process.run { "find", "commands", "gen", "harness", "-name", "*.lua" })
    for path in found.output:gmatch "[^\n]+" do
        if not exceptions:find(path .. "%s") then files[path] = assert(host.read(path)) end
    end
    check.equal(too_long(files), {})
end

function test.long_ones_are_found()
    local long = "local function f(a, b)\n" .. ("    b()\n"):rep(80) .. "end\n"
    local wide = "x.y = function(\n    a,\n    b,\n    c,\n    d,\n    e,\n    f,\n    g,\n    h\n)\nend\n"
    local good = "function a.b(c)\n" .. ("    c()\n"):rep(79) .. "end\nlocal function f(a, b, c, d, e, f, g) end\n"
    local found = { "a: function f(a, b): 81 lines, 2 parameters", "b: function(: 1 lines, 8 parameters" }
    check.equal(too_long { a = long, b = wide, c = good }, found)
end

return test
