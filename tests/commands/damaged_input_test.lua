-- Damaged input of every kind ends in one clear line and a non-zero exit status, writes nothing and leaves older files
-- alone.
local check = require "tests.support.check"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local process = require "process"
local program = require "tests.support.program"

local works = program.works
local test = {}

local folder = program.folder()
local small = program.model(
    folder,
    "small",
    [[
return { name = "small", d = 6, h = 3, tau = 4, projection = { kind = "bh4", block = 4 }, score = "gelu",
    norm = { kind = "layernorm" } }
]]
)
works { "sample", small, "-o", folder .. "/good.safetensors" }
local good = assert(host.read(folder .. "/good.safetensors"))

-- The command must be refused with one line that holds `fragment`, in a folder with an older output file.
local function refused(fragment, words, options)
    local there = program.folder()
    options = options or {}
    options.directory = there
    assert(host.write_file(there .. "/output", "older"))
    program.refuses(1, fragment, words, options)
    check.equal(host.list(there), { "output" })
    check.equal(host.read(there .. "/output"), "older")
end

-- A .npy file of so many tokens for `run`.
local function input_of(tokens)
    local path = folder .. "/input_" .. tokens .. ".npy"
    program.python("np.save(sys.argv[1], np.ones((int(sys.argv[2]), 6), '<f4'))", path, tostring(tokens))
    return path
end

-- ## Model files

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

-- ## Weights

-- Weights `bytes` must be refused by all commands that read them.
local function bad_weights(fragment, bytes, model)
    local path = folder .. "/bad.safetensors"
    assert(host.write_file(path, bytes))
    refused("/bad.safetensors: " .. fragment, { "pack", model or small, "--weights", path, "-o", "output" })
    return path
end

-- A safetensors file of this header, a text or a table, and data.
local function file_of(header, data)
    local text = type(header) == "string" and header or assert(json.encode(header, "compact"))
    return string.pack("<I8", #text) .. text .. data
end

local header_bytes = string.unpack("<I8", good)
local header_text, data = good:sub(9, 8 + header_bytes), good:sub(9 + header_bytes)

-- The good file with its header changed by `change`.
local function with_header(change)
    local header = assert(json.decode(header_text))
    change(header)
    return file_of(header, data)
end

-- The good file with the bytes of element `index` of a tensor replaced.
local function with_value(tensor, index, bytes)
    local at = json.decode(header_text)[tensor].data_offsets[1] + 4 * index
    return good:sub(1, 8 + header_bytes) .. data:sub(1, at) .. bytes .. data:sub(at + 5)
end

function test.the_good_weights_are_good()
    check.equal(with_header(function() end) ~= nil, true)
    assert(host.write_file(folder .. "/rewritten.safetensors", with_header(function() end)))
    works { "pack", small, "--weights", folder .. "/rewritten.safetensors", "-o", folder .. "/blob" }
end

function test.weights_that_are_cut_off()
    for _, length in ipairs { 0, 1, 7 } do
        bad_weights(length .. " bytes: too short", good:sub(1, length))
    end
    for _, length in ipairs { 8, 9, 8 + header_bytes // 2, 7 + header_bytes } do
        bad_weights("header: length ", good:sub(1, length))
    end
    for _, length in ipairs { 8 + header_bytes, 9 + header_bytes, 8 + header_bytes + #data // 2, #good - 1 } do
        bad_weights("", good:sub(1, length))
    end
    bad_weights("data: 1 bytes after the last tensor", good .. "\0")
end

function test.lengths_of_the_header()
    for _, row in ipairs {
        { 0, "0" },
        { 1 << 63, "9223372036854775808" },
        { -1, "18446744073709551615" },
        { 200000000, "200000000" },
    } do
        bad_weights(
            "header: length " .. row[2] .. ": must be from 1 to 100000000 bytes",
            string.pack("<I8", 0):sub(1, 0) .. string.pack("<i8", row[1]) .. good:sub(9)
        )
    end
    bad_weights("header: length 99999999: the file has only ", string.pack("<I8", 99999999) .. good:sub(9))
end

-- Every bit of the length and bits all over the header: none may pass, as each one means something.
function test.flipped_bits_of_the_header()
    local function flipped(bit)
        local at = bit // 8 + 1
        return good:sub(1, at - 1) .. string.char(good:byte(at) ~ 1 << bit % 8) .. good:sub(at + 1)
    end
    for bit = 0, 8 * (8 + header_bytes) - 1, 11 * effort.flip_stride do
        bad_weights("", flipped(bit))
    end
    for bit = 0, 63, 5 do
        bad_weights("", flipped(bit))
    end
end

function test.headers_against_the_rules()
    bad_weights("header: ", file_of("[1]", data))
    bad_weights("header: byte ", file_of('{"tables":', data))
    bad_weights("header: byte ", file_of(header_text:gsub('"tables"', '"bias"'), data))
    bad_weights("header: byte ", file_of(header_text:gsub('"dtype":"F32"', '"dtype":"F32","dtype":"F32"', 1), data))
    bad_weights("tensor bias", with_header(function(h) h.bias = "F32" end))
    bad_weights("tensor bias", with_header(function(h) h.bias.dtype = "F31" end))
    bad_weights("tensor bias", with_header(function(h) h.bias.dtype = nil end))
    bad_weights("tensor bias", with_header(function(h) h.bias.shape = json.array { -6 } end))
    bad_weights("tensor bias", with_header(function(h) h.bias.shape = json.array { 6.5 } end))
    bad_weights("tensor bias", with_header(function(h) h.bias.shape = json.array { 1 << 40, 1 << 40 } end))
    bad_weights("tensor bias", with_header(function(h) h.bias.shape = json.array { 1, 1, 1, 1, 1, 1, 1, 1, 1, 6 } end))
    bad_weights(
        "tensor hash.projection.weight: data_offsets: overlaps tensor bias",
        with_header(function(h) h.bias.data_offsets = json.array { 0, 24 } end)
    )
    bad_weights("tensor bias", with_header(function(h) h.bias.data_offsets[2] = 1 << 40 end))
    bad_weights("tensor bias", with_header(function(h) h.bias.data_offsets = json.array { 24, 0 } end))
    bad_weights("", with_header(function(h) h.tables = nil end))
    bad_weights("__metadata__: must be an object of strings", with_header(function(h) h.__metadata__ = { a = 1 } end))
end

function test.tensors_that_do_not_fit_the_model()
    local other = program.model(folder, "other", (host.read(small):gsub("h = 3", "h = 5")))
    local dims = ", that is [R][4][N/b][b out][b in]\n"
    bad_weights("tensor hash.projection.weight: shape [2][4][2][4][4]: must be [3][4][2][4][4]" .. dims, good, other)
    bad_weights(
        "tensor tables: shape [3][16][6]: must be [3][16][7], that is [h][2^tau][d_out]\n",
        good,
        program.model(folder, "other", (host.read(small):gsub("d = 6", "d = 6, d_out = 7")))
    )
    bad_weights(
        "tensor tables is missing; did you mean table?",
        with_header(function(h)
            h.table, h.tables = h.tables, nil
        end)
    )
    bad_weights(
        "tensor LayerNorm.weight is missing; did you mean layernorm.weight?",
        with_header(function(h)
            h["layernorm.weight"], h["LayerNorm.weight"] = h["LayerNorm.weight"], nil
        end)
    )
    -- What the model itself uses is not meant instead.
    bad_weights("tensor bias is missing\n", with_header(function(h)
        h.other, h.bias = h.bias, nil
    end))
    bad_weights("tensor tables: ", with_header(function(h) h.tables.dtype = "I32" end))
end

function test.values_that_are_no_numbers()
    local input = input_of(2)
    for _, row in ipairs {
        { "hash.projection.weight", 127 },
        { "hash.projection.bias", 11 },
        { "tables", 287 },
        { "bias", 5 },
        { "LayerNorm.weight", 5 },
        { "LayerNorm.bias", 0 },
    } do
        for _, value in ipairs { 0 / 0, 1 / 0, -1 / 0 } do
            local path = bad_weights("tensor " .. row[1] .. ": ", with_value(row[1], row[2], string.pack("<f", value)))
            if value ~= value then
                refused(
                    row[1] .. ": element " .. row[2] .. ": NaN: must be finite",
                    { "pack", small, "--weights", path, "-o", "output" }
                )
                refused(row[1], { "verify", small, "--weights", path, "--isa", "scalar" })
                refused(
                    row[1],
                    { "run", small, "--weights", path, "--input", input, "--output", "y.npy", "--isa", "scalar" }
                )
            end
        end
    end
end

function test.values_too_large_once_folded()
    for _, name in ipairs { "hash.projection.weight", "LayerNorm.weight" } do
        local entry = json.decode(header_text)[name]
        local count = (entry.data_offsets[2] - entry.data_offsets[1]) // 4
        local path = folder .. "/large.safetensors"
        assert(
            host.write_file(
                path,
                good:sub(1, 8 + header_bytes)
                    .. data:sub(1, entry.data_offsets[1])
                    .. string.pack("<f", 3e38):rep(count)
                    .. data:sub(entry.data_offsets[2] + 1)
            )
        )
        if name == "hash.projection.weight" then
            refused(
                "tensor hash.projection.weight: a folded value is too large for f32",
                { "pack", small, "--weights", path, "-o", "output" }
            )
        end
    end
    -- LayerNorm's offset times the projection is what overflows in the bias.
    local path = folder .. "/large.safetensors"
    program.python(
        [[
tensors = load(sys.argv[1])
tensors["LayerNorm.bias"][1][:] = 3e38
tensors["hash.projection.weight"][1][:] = 1e3
save(sys.argv[2], tensors)
]],
        folder .. "/good.safetensors",
        path
    )
    refused(
        "tensor hash.projection.bias: a folded value is too large for f32",
        { "pack", small, "--weights", path, "-o", "output" }
    )
    -- Float64 holds what no float32 does.
    program.python(
        [[
tensors = {name: ("F64", values) for name, (_, values) in load(sys.argv[1]).items()}
tensors["tables"][1].flat[7] = 1e39
save(sys.argv[2], tensors)
]],
        folder .. "/good.safetensors",
        path
    )
    refused("tensor tables: ", { "pack", small, "--weights", path, "-o", "output" })
end

-- What lookupc finds by its name is a regular file; a pipe that nobody writes into is not waited for.
function test.pipes_in_folders()
    local function with_pipe(name, files)
        local there = program.folder()
        for path, text in pairs(files) do
            assert(host.write_directory(there, { [path] = text }))
        end
        assert(process.run({ "mkfifo", there .. "/" .. name }).status == 0)
        return there
    end
    local function refuses(there, name, words)
        program.refuses(1, there .. "/" .. name .. ": is not a regular file", words)
    end
    local there = with_pipe("MANIFEST.json", {})
    refuses(there, "MANIFEST.json", { "check", there })
    refuses(there, "MANIFEST.json", { "emit", small, "--isa", "scalar", "-o", there })
    there = with_pipe("small.h", {})
    refuses(there, "small.h", { "emit", small, "--isa", "scalar", "-o", there })
    there = with_pipe("model.safetensors.index.json", {})
    refuses(there, "model.safetensors.index.json", { "pack", small, "--weights", there, "-o", there .. "/blob" })
    there = with_pipe("config.json", {})
    refuses(there, "config.json", { "import", there, "-o", there .. "/m.lua" })
    there = with_pipe("other.lua", { ["m.lua"] = 'return include "other.lua"' })
    refuses(there, "other.lua", { "plan", there .. "/m.lua" })
    there = with_pipe("t.json", { ["m.lua"] = 'return { name = "t", tokenizer = { file = "t.json", kind = "bpe" } }' })
    refuses(there, "t.json", { "plan", there .. "/m.lua" })
    there = with_pipe("tuned.jsonl", {})
    local words = { "tune", small, "--isa", "scalar", "--time", "1s", "--resume", "-o", there .. "/tuned.lua" }
    refuses(there, "tuned.jsonl", words)
    -- one that the user names is read
    local script = '"$1" tuned merge <(echo x) 2>&1'
    local env = { LOOKUPC_STORE = there .. "/store" }
    local merged = process.run({ "bash", "-c", script, "bash", check.lookupc }, { env = env })
    check.matches(merged.output, ": is no log of lookupc tune\n$")
end

function test.weights_that_cannot_be_read()
    for _, command in ipairs {
        { "pack", small, "-o", "output" },
        { "verify", small, "--isa", "scalar" },
        { "run", small, "--isa", "scalar", "--input", input_of(2), "--output", "output" },
    } do
        for _, row in ipairs {
            { "none", "none: No such file or directory" },
            { folder, folder .. ": is a folder without model.safetensors and model.safetensors.index.json" },
            { "/dev/zero", "/dev/zero: " },
        } do
            local words = { table.unpack(command) }
            words[#words + 1], words[#words + 2] = "--weights", row[1]
            refused(row[2], words)
        end
    end
end

-- ## Inputs of run

local function npy(header, bytes) return "\x93NUMPY\1\0" .. string.pack("<s2", header) .. bytes end

local function bad_input(fragment, bytes)
    local path = folder .. "/x.npy"
    assert(host.write_file(path, bytes))
    refused(path .. ": " .. fragment, {
        "run",
        small,
        "--weights",
        folder .. "/good.safetensors",
        "--input",
        path,
        "--output",
        "output",
        "--isa",
        "scalar",
    })
end

function test.inputs_against_the_rules()
    local floats = string.pack("<f", 1.5):rep(12)
    local function described(text) return npy("{" .. text .. "}\n", floats) end
    local fine = "'descr': '<f4', 'fortran_order': False, 'shape': (2, 6), "
    local x = folder .. "/x.npy"
    assert(host.write_file(x, described(fine)))
    works {
        "run",
        small,
        "--weights",
        folder .. "/good.safetensors",
        "--input",
        x,
        "--output",
        folder .. "/y.npy",
        "--isa",
        "scalar",
    }

    bad_input("", described((fine:gsub("%(2, 6%)", "(3, 4)"))))
    bad_input("data: 48 bytes: must be 96", described((fine:gsub("<f4", "<f8"))))
    bad_input("descr: '>f4': must be '<f4'", described((fine:gsub("<f4", ">f4"))))
    bad_input("descr: '<i4': must be '<f4'", described((fine:gsub("<f4", "<i4"))))
    bad_input("fortran_order: True: must be False", described((fine:gsub("False", "True"))))
    bad_input("shape: 1 dimension: must be 2", described((fine:gsub("%(2, 6%)", "(12,)"))))
    bad_input("shape: 3 dimensions: must be 2", described((fine:gsub("%(2, 6%)", "(1, 2, 6)"))))
    bad_input("data: 48 bytes: must be 24 for shape (1, 6)", described((fine:gsub("%(2, 6%)", "(1, 6)"))))
    bad_input("data: 48 bytes: must be 72 for shape (3, 6)", described((fine:gsub("%(2, 6%)", "(3, 6)"))))
    bad_input("shape: ", described((fine:gsub("%(2, 6%)", "(4611686018427387904, 6)"))))
    bad_input("shape: ", described((fine:gsub("%(2, 6%)", "(99999999999999999999999, 6)"))))
    bad_input("header: ", described((fine:gsub("%(2, 6%)", "(-2, 6)"))))
    bad_input("header: shape: missing", described("'descr': '<f4', 'fortran_order': False, "))
    bad_input("header: descr: given twice", described(fine .. "'descr': '<f4', "))
    bad_input("version: 3.0: must be 1.0 or 2.0", (described(fine):gsub("NUMPY\1", "NUMPY\3")))
    bad_input("not an .npy file", good)
    local whole = described(fine)
    for length = 0, #whole - 1, 7 do
        bad_input("", whole:sub(1, length))
    end
end

function test.inputs_that_cannot_be_read()
    for _, row in ipairs {
        { "none.npy", "none.npy: No such file or directory" },
        { folder, folder .. ": " },
        { "/dev/zero", "/dev/zero: " },
    } do
        refused(row[2], {
            "run",
            small,
            "--weights",
            folder .. "/good.safetensors",
            "--input",
            row[1],
            "--output",
            "output",
            "--isa",
            "scalar",
        })
    end
end

-- What costs nothing is looked at before anything is packed or compiled: there is no such compiler.
function test.inputs_and_outputs_are_looked_at_first()
    local narrow = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 5)}\n", ("\0"):rep(20))
    local long = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (999, 64)}\n", ("\0"):rep(4 * 999 * 64))
    assert(host.write_file(folder .. "/narrow.npy", narrow))
    assert(host.write_file(folder .. "/long.npy", long))
    local block = program.root .. "/gen/models/tiny_skipless.lua"
    works { "sample", block, "-o", folder .. "/block.safetensors" }
    local function first(fragment, model, weights, input, output, ...)
        local words = { "run", model, "--weights", folder .. weights, "--input", input, "--output", output, ... }
        words[#words + 1], words[#words + 2] = "--cc", "no-such-compiler"
        refused(fragment, words)
    end
    for _, more in ipairs { { "--isa", "scalar" }, { "--arithmetic", "integer" } } do
        local weights = "/good.safetensors"
        first("none.npy: No such file", small, weights, "none.npy", "output", table.unpack(more))
        first("not an .npy file", small, weights, small, "output", table.unpack(more))
        first("5 columns: must be d = 6", small, weights, folder .. "/narrow.npy", "output", table.unpack(more))
        first("none/y: No such file", small, weights, input_of(2), "none/y", table.unpack(more))
        first("no-such-compiler", small, weights, input_of(2), "output", table.unpack(more))
    end
    first("none.npy: No such file", block, "/block.safetensors", "none.npy", "output")
    first("5 columns: must be d = ", block, "/block.safetensors", folder .. "/narrow.npy", "output")
    first("999 tokens: must be at most", block, "/block.safetensors", folder .. "/long.npy", "output")
    first("none/y: No such file", block, "/block.safetensors", folder .. "/narrow.npy", "none/y")
end

-- ## Outputs

local outputs = {
    { "emit", small, "-o" },
    { "sample", small, "-o" },
    { "pack", small, "--weights", folder .. "/good.safetensors", "-o" },
}

local function with_output(words, path)
    words = { table.unpack(words) }
    words[#words + 1] = path
    return words
end

local function ready_input(tokens)
    local weights, input = folder .. "/good.safetensors", input_of(tokens)
    return { "run", small, "--weights", weights, "--isa", "scalar", "--input", input, "--output" }
end

function test.output_folders_that_are_not_there()
    for _, words in ipairs { outputs[2], outputs[3], ready_input(2) } do
        refused("none/output: No such file or directory", with_output(words, "none/output"))
        refused("Not a directory", with_output(words, "output/y"))
        local rule = words[1] == "pack" and "Is a directory" or "is not a regular file"
        refused(folder .. ": " .. rule, with_output(words, folder))
        refused("/proc/none/y: ", with_output(words, "/proc/none/y"))
        refused("/dev/null: is not a regular file", with_output(words, "/dev/null"))
    end
    refused("output: ", with_output(outputs[1], "output"))
    refused("/proc/none", with_output(outputs[1], "/proc/none/bundle"))
end

-- Root may write everywhere: become somebody else for a moment.
function test.output_folders_that_are_read_only()
    for _, words in ipairs { outputs[1], outputs[2], outputs[3], ready_input(2) } do
        local result = assert(process.run({
            "bash",
            "-c",
            [[
            dir=$(mktemp -d); lookupc=$1; folder=$2; shift 2
            cp "$lookupc" "$dir/lookupc"; cp -r "$folder" "$dir/input"; echo older > "$dir/output"
            chmod -R a+rX,a-w "$dir"
            words=("${@//"$folder"/"$dir/input"}")
            as=; test "$(id -u)" = 0 && as="setpriv --reuid 65534 --clear-groups"
            TMPDIR=/tmp $as "$dir/lookupc" "${words[@]}" "$dir/new"; echo "status $?"
            TMPDIR=/tmp $as "$dir/lookupc" "${words[@]}" "$dir/output"; echo "status $?"
            ls "$dir"; cat "$dir/output"; chmod -R u+w "$dir"; rm -rf "$dir"]],
            "bash",
            check.lookupc,
            folder,
            table.unpack(words),
        }, { timeout = 60 }))
        check.matches(
            result.output,
            "^lookupc[^\n]*/new[^\n]*: Permission denied\nstatus 1\nlookupc[^\n]*/output[^\n]*: [^\n]*\nstatus \z
                1\ninput\nlookupc\noutput\nolder\n$"
        )
    end
end

local config = [[
{ "model_type": "gpt_neox", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100,
  "intermediate_size": 256, "hidden_act": "gelu", "max_position_embeddings": 32, "rotary_pct": 0.25,
  "rotary_emb_base": 10000, "layer_norm_eps": 1e-05, "use_parallel_residual": true }
]]

-- A symbolic link to nothing is refused by every command, before the work where that takes long, and stays as it was.
function test.outputs_that_are_links_to_nothing()
    local there, block = program.folder(), program.root .. "/gen/models/tiny_skipless.lua"
    local link = there .. "/link"
    process.run { "ln", "-s", "none", link }
    works { "sample", block, "--unfused", "-o", folder .. "/block.safetensors" }
    assert(host.write_file(folder .. "/config.json", config))
    local fuse = { "fuse", block, "--weights", folder .. "/block.safetensors", "--eliminate", "QP" }
    local sharded = table.move(fuse, 1, #fuse, 1, {})
    table.move({ "--shard-mib", "1" }, 1, 2, #sharded + 1, sharded)
    for _, row in ipairs {
        { outputs[1], "-o" },
        { outputs[2], "-o" },
        { outputs[3], "-o" },
        { fuse, "-o" },
        { sharded, "-o" },
        { { "import", folder .. "/config.json" }, "-o" },
        { ready_input(2), "--output" },
        { { "bench", small, "--isa", "scalar", "--cc", "no-such-compiler" }, "--html" },
        { { "tune", small, "--time", "1s", "--cc", "no-such-compiler" }, "-o" },
        { { "tune", small, "--time", "1s", "--cc", "no-such-compiler", "-o", "output" }, "--html" },
        { { "tune", small, "--time", "1s", "--cc", "no-such-compiler", "--shard", "1/2" }, "--out" },
    } do
        local words = with_output(row[1], link)
        if words[#words - 1] ~= row[2] then table.insert(words, #words, row[2]) end
        refused("is a symbolic link to nothing", words)
        check.equal(host.list(there), { "link" })
        check.equal(process.run({ "readlink", link }).output, "none\n")
    end
end

-- Every command that compiles needs a temporary folder.
function test.temporary_folders_that_cannot_be_made()
    local place = program.folder()
    assert(host.write_file(place .. "/file", ""))
    local words = {
        ready_input(2),
        { "run", small, "--arithmetic", "integer", table.unpack(ready_input(2), 3) },
        { "verify", small, "--isa", "scalar" },
        { "verify", small, "--arithmetic", "integer" },
        { "verify", program.root .. "/gen/models/tiny_skipless.lua", "--isa", "scalar" },
        { "bench", small, "--isa", "scalar" },
        { "bench", program.root .. "/gen/models/tiny_skipless.lua", "--isa", "scalar" },
        { "tune", small, "--time", "1s" },
        { "tune", small, "--time", "1s", "--shard", "1/2", "--out", "shard.jsonl" },
    }
    words[1][#words[1] + 1], words[2][#words[2] + 1] = "y.npy", "y.npy"
    table.remove(words[2], 7) -- --isa scalar
    table.remove(words[2], 7)
    local environment = { LOOKUPC_STORE = place .. "/store.sqlite" }
    for _, command in ipairs(words) do
        environment.TMPDIR = place .. "/none"
        refused("lookupc: TMPDIR: " .. place .. "/none: ", command, { env = environment })
    end
    for _, row in ipairs {
        { place .. "/file", "/file: no temporary folder can be made there: Not a directory" },
        { "none", "TMPDIR: none: no temporary folder can be made there: No such file or directory" },
        { "/" .. ("long/"):rep(1000), "...: no temporary folder can be made there: " },
        { ("x"):rep(300), "File name too long" },
        { "new\nline", "TMPDIR: new?line: no temporary folder can be made there: No such file or directory" },
    } do
        environment.TMPDIR = row[1]
        refused(row[2], { "verify", small, "--isa", "scalar" }, { env = environment })
    end
    -- Not needed, empty, relative, and with letters that a shell would not leave alone.
    works({ "plan", small }, { env = { TMPDIR = "/none" } })
    works({ "emit", small, "-o", place .. "/bundle", "--isa", "scalar" }, { env = { TMPDIR = "/none" } })
    process.run { "mkdir", place .. '/it\'s "two"\nlines, $HOME' }
    for _, name in ipairs { "", ".", place .. '/it\'s "two"\nlines, $HOME' } do
        works({ "verify", small, "--isa", "scalar" }, {
            env = { TMPDIR = name, XDG_CACHE_HOME = #name > 1 and place .. "/cache" or nil },
            directory = place,
        })
    end
    -- Root may write everywhere: become somebody else for a moment.
    local result = assert(process.run({
        "bash",
        "-c",
        [[
        dir=$(mktemp -d); cp "$1" "$dir/lookupc"; cp "$2" "$dir/small.lua"; mkdir "$dir/closed"
        chmod a+rx,a-w "$dir" "$dir/closed"
        as=; test "$(id -u)" = 0 && as="setpriv --reuid 65534 --clear-groups"
        TMPDIR=$dir/closed $as "$dir/lookupc" verify "$dir/small.lua" --isa scalar; echo "status $?"
        chmod u+w "$dir"; rm -rf "$dir"]],
        "bash",
        check.lookupc,
        small,
    }))
    check.matches(result.output, "^lookupc: TMPDIR: [^\n]*/closed: [^\n]*: Permission denied\nstatus 1\n$")
end

function test.full_disks()
    -- A file may have 1 KiB: less than every one of these outputs, which end in File too large as they would on a full
    -- disk.
    local full = { limit = "ulimit -f 1" }
    refused("File too large", with_output(outputs[1], "new"), full)
    refused("output: File too large", with_output(outputs[2], "output"), full)
    refused("output: File too large", with_output(outputs[3], "output"), full)
    -- Sources, library and blob fit, the result of 40,000 tokens does not.
    refused("output: File too large", with_output(ready_input(40000), "output"), { limit = "ulimit -f 800" })
    -- No room for the sources.
    refused("File too large", with_output(ready_input(2), "output"), full)
    refused("File too large", { "verify", small, "--isa", "scalar" }, full)
    -- Room for the sources, none for the compiler.
    local nothing_kept = { XDG_CACHE_HOME = program.folder() }
    refused("gcc: ", with_output(ready_input(2), "output"), { limit = "ulimit -f 16", env = nothing_kept })
    -- None for a library that was kept, and none for keeping one.
    local kept = { XDG_CACHE_HOME = program.folder() }
    works({ "verify", small, "--isa", "scalar" }, { env = kept })
    refused(
        "libsmall.so: File too large",
        { "verify", small, "--isa", "scalar" },
        { limit = "ulimit -f 16", env = kept }
    )
    for _, words in ipairs { { "plan", small }, { "help" }, { "--version" } } do
        local result = process.run { "bash", "-c", '"$@" > /dev/full', "bash", check.lookupc, table.unpack(words) }
        check.equal({ result.status, result.output }, { 1, "lookupc: standard output: No space left on device\n" })
    end
end

-- emit onto an older bundle: all files are replaced or none.
function test.older_bundles_stay_whole()
    local bundle = program.folder()
    works { "emit", small, "-o", bundle }
    assert(host.write_file(bundle .. "/small.h", "older"))
    local before = process.run({ "bash", "-c", "cat " .. bundle .. "/* | sha256sum" }).output
    local names = host.list(bundle)
    program.refuses(
        1,
        "File too large",
        { "emit", small, "-o", bundle, "--schedule", "gather.group=1" },
        { limit = "ulimit -f 1" }
    )
    check.equal(host.list(bundle), names)
    check.equal(process.run({ "bash", "-c", "cat " .. bundle .. "/* | sha256sum" }).output, before)
end

-- An output that is one of the inputs, under another name too, is refused and the input stays.
function test.outputs_over_inputs()
    local there = program.folder()
    local path = program.model(there, "small", assert(host.read(small)))
    assert(host.write_file(there .. "/w.safetensors", good))
    local text = assert(host.read(path))
    local function keeps(words)
        program.refuses(1, "choose another file", words, { directory = there })
        check.equal(host.read(path), text)
        check.equal(host.read(there .. "/w.safetensors"), good)
    end
    keeps { "sample", path, "-o", path }
    keeps { "pack", path, "--weights", "w.safetensors", "-o", "./w.safetensors" }
    keeps { "pack", path, "--weights", "w.safetensors", "-o", path }
    keeps { "run", path, "--weights", "w.safetensors", "--input", "x.npy", "--output", there .. "/w.safetensors" }
end

return test
