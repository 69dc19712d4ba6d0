-- Damaged checkpoints end in one clear line and a non-zero exit status: nothing is written, older files stay.
local check = require "tests.support.check"
local damaged = require "tests.support.damaged"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local process = require "process"
local program = require "tests.support.program"

local works = program.works
local test = {}

local folder, small, good = damaged.folder, damaged.model, damaged.good
local refused, input_of = damaged.refused, damaged.input_of

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
    for bit = 0, 8 * (8 + header_bytes) - 1, effort.full "damage" and 11 or 77 do
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

return test
