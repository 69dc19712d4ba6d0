-- Checkpoints of small models in a folder, and copies of them whose tensors differ.
local check = require "tests.support.check"
local host = require "host"
local json = require "json"
local program = require "tests.support.program"
local safetensors_bytes = require "gen.import.safetensors_bytes"

local folder = program.folder()
local checkpoints = { folder = folder }

function checkpoints.path_of(name) return folder .. "/" .. name end

-- The tensors of a file: shapes by name.
function checkpoints.shapes(path)
    local bytes = assert(host.read(path))
    local list = {}
    for name, entry in pairs(json.decode(bytes:sub(9, 8 + string.unpack("<I8", bytes)))) do
        list[name] = table.concat(entry.shape, " ")
    end
    return list
end

-- A copy of the checkpoint `from` in the file `name` whose tensors, { dtype, shape, bytes } by name, `change` has
-- changed.
local function changed_copy(from, name, change)
    local bytes, tensors = assert(host.read(from)), {}
    local start = 8 + string.unpack("<I8", bytes)
    for tensor, entry in pairs(json.decode(bytes:sub(9, start))) do
        local first, last = table.unpack(entry.data_offsets)
        local own = bytes:sub(start + 1 + first, start + last)
        tensors[tensor] = { dtype = entry.dtype, shape = entry.shape, bytes = own }
    end
    tensors = change(tensors) or tensors
    local list, to = {}, checkpoints.path_of(name)
    for tensor, t in pairs(tensors) do
        list[#list + 1] = { name = tensor, dtype = t.dtype, shape = t.shape, bytes = t.bytes }
    end
    table.sort(list, function(a, b) return a.name < b.name end)
    assert(host.write_file(to, safetensors_bytes.of(list)))
    return to
end

-- A copy of the checkpoint `from` with copies of tensors: names by name of the original.
function checkpoints.with_copies(from, copies)
    return changed_copy(from, "copies.safetensors", function(tensors)
        for name, copy in pairs(copies) do
            tensors[copy] = tensors[name]
        end
    end)
end

-- A copy of the checkpoint `from` with tensors of ones, or of `value`, added under `names`, and those in `without`
-- taken out. count: of values, or the shape.
function checkpoints.with(from, names, count, without, value)
    local shape, values = type(count) == "table" and count or { count or 4 }, 1
    for _, n in ipairs(shape) do
        values = values * n
    end
    return changed_copy(from, "changed.safetensors", function(tensors)
        for _, name in ipairs(without or {}) do
            tensors[name] = nil
        end
        for _, name in ipairs(names) do
            tensors[name] = { dtype = "F32", shape = shape, bytes = string.pack("<f", value or 1):rep(values) }
        end
    end)
end

-- A copy of the checkpoint `from` whose names are changed by gsub(pattern, by).
function checkpoints.renamed(from, pattern, by)
    return changed_copy(from, "renamed.safetensors", function(tensors)
        local others, changes = {}, 0
        for name, tensor in pairs(tensors) do
            local other, count = name:gsub(pattern, by)
            others[other], changes = tensor, changes + count
        end
        check.equal(changes > 0, true)
        return others
    end)
end

function checkpoints.transformer(name, changes)
    local text = [[
local m = { name = "%s", layers = 2, vocab = 20, d = 16, heads = 2, attention = { rope = {}, context = 8 },
    ffn = { kind = "mlp", f = 24, activation = "relu" } }
%s
return m]]
    return program.model(folder, name, text:format(name, changes))
end

return checkpoints
