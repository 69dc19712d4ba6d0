-- The files of the user that a command has read: what a build has to look at before it runs the command again, and what
-- the command does not write over.
local host = require "host"
local json = require "json"

local files_read = {}

local largest_index = 1 << 28 -- bytes

local list, seen, kept = {}, {}, false

-- From now on, what is noted is not written over.
function files_read.keep() kept = true end

-- Notes a file that has been read. Returns its path.
function files_read.note(path)
    if not seen[path] and path ~= "-" then
        list[#list + 1] = path
        if kept then host.note_input(path) end
    end
    seen[path] = true
    return path
end

-- The files of a checkpoint: a file, an index and the files that it names, or those of a folder that are read
-- (gen/weights/shards.c).
function files_read.of_checkpoint(path)
    if host.kind(path) == "directory" then
        local index = path .. "/model.safetensors.index.json"
        path = host.kind(index) and index or path .. "/model.safetensors"
    end
    local files = {}
    local index = path:find "%.json$" and json.decode(host.read_regular(path, largest_index) or "")
    for _, file in pairs(type(index) == "table" and type(index.weight_map) == "table" and index.weight_map or {}) do
        files[#files + 1] = path:gsub("[^/]*$", "") .. tostring(file)
    end
    table.sort(files)
    table.insert(files, 1, path)
    return files
end

-- Notes the files of a checkpoint.
function files_read.note_checkpoint(path)
    for _, file in ipairs(files_read.of_checkpoint(path)) do
        files_read.note(file)
    end
end

-- All files that have been noted, in that order.
function files_read.list() return { table.unpack(list) } end

-- A path as make and Ninja read it in a rule.
local function escaped(path) return (path:gsub("\\", "\\\\"):gsub("[ #]", "\\%0"):gsub("%$", "$$$$")) end

-- The text of a dependency file: `targets` are made from all that has been noted.
function files_read.rule(targets)
    local words = {}
    for i, target in ipairs(targets) do
        words[i] = escaped(target)
    end
    local lines = { table.concat(words, " ") .. ":" }
    for _, path in ipairs(list) do
        lines[#lines + 1] = "  " .. escaped(path)
    end
    return table.concat(lines, " \\\n") .. "\n"
end

return files_read
