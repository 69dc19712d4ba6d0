-- Damaged model files end in one clear line and a non-zero exit status: nothing is written, older files stay.
local damaged = require "tests.support.damaged"
local host = require "host"
local program = require "tests.support.program"

local works = program.works
local test = {}

local folder, small, refused = damaged.folder, damaged.model, damaged.refused

-- `fragment` with the model's path in front if it starts with a colon.
local function bad_model(fragment, text)
    local path = program.model(folder, "bad", text)
    if fragment:find("^:") then fragment = path .. fragment end
    refused(fragment, { "plan", path })
    refused(fragment, { "emit", path, "-o", "new" })
    refused(fragment, { "sample", path, "-o", "output" })
end

function test.model_files_that_are_no_data()
    bad_model(":2: ", "return {\nname = = 1 }")
    bad_model(": must return one table, returned nothing", "")
    bad_model(": must return one table, returned number", "return 12")
    bad_model(": must return one table, returned ", "return {}, {}")
    bad_model(": is compiled Lua", "\27Lua\84\0")
    bad_model(": is binary: must be a text", "\0\1\2\255")
    bad_model(": is binary: must be a text", "return {} --\127")
    bad_model(": is binary: must be a text", (assert(host.read(small)):gsub(".", "%0\0"))) -- UTF-16
    bad_model(":1: ", "return io.open('x')")
    bad_model(":1: ", "return os")
    bad_model(":1: ", "require 'gen.emit'")
    bad_model(": name: is a function", "return { name = (function() end) }")
    bad_model("", "local t = {} t[1] = t return t")
end

function test.keys_with_quotes_in_them()
    bad_model(': ["a\\""] = 1: unknown key', [[return { ['a"'] = 1, name = "x" }]])
    bad_model(':1: name = "a]": ', "return { name = 'a]' }")
end

function test.fields_that_are_given_twice()
    bad_model(":1: h: is given twice, first in line 1", "return { h = 40, h = 41 }")
    bad_model(":4: d: is given twice, first in line 2", 'return { h = 1;\nd = 1, e = {\n{ d = 2 } },\n["d"] = 4 }')
    bad_model(":2: a.b: is given twice, first in line 1", "return { ['a.b'] = (1), --[[ c = 1, ]]\n[ \"a.b\" ] = 2 }")
    bad_model(":1: d: is given twice", "local t = { d = 1, d = 2 } return t")
    bad_model(":1: d: is given twice", "return { f = (function() local d = 1; d = 2 return d end)(), d = 1, d = 2, }")
    -- What only looks so.
    local text = assert(host.read(small))
    works { "plan", program.model(folder, "once", "local d, c = 1, 2; c = d\n--[==[ d = 1, d = ]==]\n" .. text) }
    local body = "if d == c then repeat d, c = 1, 2 until d == 3 end return { d, d = d == c, c, e = d == c }"
    works { "plan", program.model(folder, "blocks", "local f = { function(d, c) " .. body .. " end }\n" .. text) }
    works { "plan", program.model(folder, "commented", (text:gsub("{", "{ -- }, d = 1, d = 2\n", 1))) }
end

function test.model_files_that_never_end()
    bad_model(":1: took more than 10000000 instructions", "while true do end")
    bad_model(": needs more than 16 MiB", "local t = {} for i = 1, 1e9 do t[i] = { i } end")
    bad_model(": needs more than 16 MiB", 'local s = "x" while true do s = s .. s end')
    bad_model(": needs more than 16 MiB", "local function f() return 1 + f() end return f()")
    bad_model(": is larger than 1048576 bytes", "return {" .. (" "):rep(1 << 20) .. "}")
end

function test.model_files_that_cannot_be_read()
    refused("none.lua: No such file or directory", { "plan", "none.lua" })
    refused(folder .. ": Is a directory", { "plan", folder })
    refused("/dev/zero: ", { "plan", "/dev/zero" })
    refused("/dev/null: ", { "plan", "/dev/null" })
    refused("/bin/ls: is binary", { "plan", "/bin/ls" })
    refused("/bin/ls: is binary", { "emit", small, "--tuned", "/bin/ls", "-o", "new" })
    refused("good.safetensors: is binary", { "verify", folder .. "/good.safetensors" })
    local config = folder .. "/config.json"
    assert(host.write_file(config, '{ "model_type": "gpt_neox" }'))
    refused("lookupc import makes a model file", { "plan", config })
end

-- What editors put at the start of a text, and letters of other languages.
function test.model_files_with_marks_and_letters()
    local text = "\u{FEFF}" .. assert(host.read(small)) .. "-- größer als 模型\r\n"
    works { "plan", program.model(folder, "marked", text) }
end

function test.models_against_the_rules()
    local function wrong(fragment, from, to)
        local text = assert(host.read(small))
        local first, last = text:find(from, 1, true)
        bad_model(fragment, text:sub(1, first - 1) .. to .. text:sub(last + 1))
    end
    wrong(':1: tua = 4: unknown key; did you mean "tau"?', "tau", "tua")
    wrong(":1: tau = 40: must be an integer from 1 to 16", "tau = 4", "tau = 40")
    wrong(":1: tau = 4.5: must be an integer", "tau = 4", "tau = 4.5")
    wrong(':1: tau = "4": must be an integer', "tau = 4", 'tau = "4"')
    wrong(": tau: required key is missing", "tau = 4,", "")
    wrong(":1: h = 0: ", "h = 3", "h = 0")
    wrong(":1: h = -1: ", "h = 3", "h = -1")
    wrong("nan: must be an integer", "h = 3", "h = 0/0")
    wrong(":1: h = inf: ", "h = 3", "h = 1/0")
    wrong(":1: d = {...}: ", "d = 6", "d = {}")
    wrong(":1: d = true: ", "d = 6", "d = true")
    wrong(":1: projection.block = 3: must be a power of two", "block = 4", "block = 3")
    wrong(":1: projection.block = 16: must be a power of two from 2 to 8", "block = 4", "block = 16")
    wrong(':1: projection.kind = "bh5": ', '"bh4"', '"bh5"')
    wrong(":1: projection.block = 4: only for kind", '"bh4"', '"dense"')
    wrong(':1: name = "int": ', '"small"', '"int"')
    wrong(':1: name = "a b": ', '"small"', '"a b"')
    wrong(':1: name = "../up": ', '"small"', '"../up"')
    wrong(
        ":1: h = 65536: tables of h * 2^tau * d_out float32 take ",
        "d = 6, h = 3, tau = 4",
        "d = 65536, h = 65536, tau = 16"
    )
    wrong(":1: neighbours = 17: must be at most 2^tau = 16", "d = 6,", "d = 6, neighbours = 17,")
    wrong(
        ":1: neighbours = 65536: h * neighbours = 1114112 rows a token, at most 1048576 are allowed",
        "d = 6, h = 3, tau = 4",
        "d = 6, h = 17, tau = 16, neighbours = 65536"
    )
end

return test
