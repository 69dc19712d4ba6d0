-- Rules about files that commands share.
local files_read = require "gen.host.files_read"
local host = require "host"
local misuse = require "gen.schema.misuse"

local file_rules = {}

-- Raises one line if writing `path`, the value of `option`, would overwrite one of the files that the command reads:
-- `others` (nil: none), or one that it has noted. What it notes later is not written over either (files_read.keep).
function file_rules.not_over(option, path, others)
    for _, list in ipairs { others or {}, files_read.list() } do
        for _, input in pairs(list) do -- options that are absent leave holes
            if host.same_file(path, input) then
                error(option .. ": " .. path .. ": is the input " .. input .. ": choose another file", 0)
            end
        end
    end
end

-- The last folder on the way to `path` that is there, and the names that lead on from it: of folders to be made, and of
-- the file.
local function way_to(path)
    local folder, way = path:find "^/" and "/" or ".", {}
    for name in path:gmatch "[^/]+" do
        local next = folder .. "/" .. name
        if #way == 0 and host.kind(next) == "directory" then
            folder = next
        elseif name == ".." then
            table.remove(way)
        elseif name ~= "." then
            way[#way + 1] = name
        end
    end
    return folder, way
end

-- Whether two paths lead to one file, now or when it will have been written.
local function one_file(a, b)
    if a == b or host.same_file(a, b) then return true end
    local folder, way = way_to(a)
    local other_folder, other_way = way_to(b)
    return table.concat(way, "/") == table.concat(other_way, "/") and host.same_file(folder, other_folder)
end

-- Raises one line if `path` cannot become a file, with the folders that it needs; changes nothing.
function file_rules.can_be_made(path)
    local folder, way = way_to(path)
    local made = #way > 1 and not path:find "/$" and not host.kind(folder .. "/" .. way[1])
    assert(host.check_output(made and folder .. "/" .. way[#way] or path))
end

-- Writes a file and makes the folders that it needs; raises one line.
function file_rules.make(path, bytes)
    local folder, name = path:match "^(.-)([^/]*)$"
    assert(host.write_directory(folder == "" and "." or folder, { [name] = bytes }))
end

-- Raises one line if `path`, the value of `option`, is one of the files that the command writes before it.
function file_rules.not_over_output(option, path, outputs)
    for _, output in ipairs(outputs) do
        if one_file(path, output) then
            error(option .. ": " .. path .. ": is the output " .. output .. ": choose another file", 0)
        end
    end
end

-- Raises one line if the files that a command writes, { option, path } each, would overwrite one of those that it
-- reads, `others` and noted ones, or each other.
function file_rules.all_apart(outputs, others)
    local before = {}
    for _, output in ipairs(outputs) do
        local option, path = table.unpack(output)
        file_rules.not_over(option, path, others)
        file_rules.not_over_output(option, path, before)
        before[#before + 1] = path
    end
end

-- The same, and if one of them cannot be written now.
function file_rules.check_outputs(outputs, others)
    file_rules.all_apart(outputs, others)
    for _, output in ipairs(outputs) do
        assert(host.check_output(output[2]))
    end
end

-- Raises one line if `path`, the value of `option`, cannot become a file: before the work whose result it shall hold.
function file_rules.can_become(option, path)
    local folder = path:match("^(.*/)[^/]*$") or "."
    if host.kind(folder) ~= "directory" then
        error(string.format('%s: "%s": there is no folder %s', option, path, folder), 0)
    end
    if path:find("/$") or path == "" or host.kind(path) == "directory" then
        error(string.format('%s: "%s": must be a file', option, path), 0)
    end
    if host.kind(path) == "link" then
        error(string.format('%s: "%s": is a symbolic link to nothing', option, path), 0)
    end
    local good, message = host.check_output(path)
    if not good then error(option .. ": " .. message, 0) end
end

-- Raises one line if `path`, the value of `option`, cannot be part of what --json prints.
function file_rules.json_can_hold(option, path)
    if not utf8.len(path) then misuse(string.format('%s: "%s": must be UTF-8 beside --json', option, path)) end
end

return file_rules
