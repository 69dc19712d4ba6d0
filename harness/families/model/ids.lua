-- Reads the ids of a sequence from a file: text, or a .npy file of integers.
local host = require "host"

local ids = {}

local most_bytes = 1 << 28
local formats = { ["<i4"] = "<i4", ["<i8"] = "<i8", ["<u4"] = "<I4", ["|u1"] = "<I1", ["<u2"] = "<I2", ["<i2"] = "<i2" }

local function refuse(path, rule) error(path .. ": " .. rule, 0) end

-- The integers in the bytes of a .npy file.
local function of_npy(path, bytes)
    local version = bytes:byte(7)
    local length_format = version == 1 and "<I2" or version == 2 and "<I4"
    if not length_format or #bytes < 12 then refuse(path, "is no .npy file of version 1.0 or 2.0") end
    local length, at = string.unpack(length_format, bytes, 9)
    local header = bytes:sub(at, at + length - 1)
    local descr = header:match "'descr':%s*'([^']*)'"
    local shape = header:match "'shape':%s*%(([%d,%s]*)%)"
    if #header < length or not descr or not shape then
        refuse(path, "is no .npy file: its header is not as it should be")
    end
    local format = formats[descr]
    if not format then refuse(path, "descr: '" .. descr .. "': must be integers, such as '<i4' or '<i8'") end
    local count, large = 1, 0
    for dimension in shape:gmatch "%d+" do
        count = count * (tonumber(dimension) or 0)
        if dimension ~= "1" then large = large + 1 end
    end
    if large > 1 then refuse(path, "shape (" .. shape .. "): must be of one sequence") end
    local size = string.packsize(format)
    local first = at + length
    if count ~= math.floor(count) or #bytes - first + 1 ~= count * size then
        refuse(path, "its data are not as long as its header says")
    end
    local list = {}
    for i = 1, math.tointeger(count) do
        list[i] = string.unpack(format, bytes, first + (i - 1) * size)
    end
    return list
end

-- The integers in a text, separated by white space or commas.
local function of_text(path, text)
    local list = {}
    for word in text:gmatch "[^%s,]+" do
        local id = word:find "^-?%d+$" and math.tointeger(tonumber(word))
        if not id then
            refuse(path, string.format('"%s": must be an integer', word:sub(1, 40):gsub("[%c\x7f-\xff]", "?")))
        end
        list[#list + 1] = id
    end
    return list
end

-- The ids of the file `path`, each of which must be below `vocab`; raises one line.
function ids.read(path, vocab)
    local bytes = assert(host.read(path, most_bytes))
    local list = bytes:sub(1, 6) == "\x93NUMPY" and of_npy(path, bytes) or of_text(path, bytes)
    for i, id in ipairs(list) do
        if id < 0 or id >= vocab then
            refuse(path, string.format("id %d = %d: must be from 0 to vocab - 1 = %d", i, id, vocab - 1))
        end
    end
    return list
end

return ids
