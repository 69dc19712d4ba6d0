-- Text that models learn from or are measured on: files of UTF-8, read whole.
local host = require "host"

local text_file = {}

local most_bytes = 1 << 32 -- of a file to train on

-- The line that byte number `at` of `bytes` stands in.
local function line_of(bytes, at)
    local _, count = bytes:sub(1, at - 1):gsub("\n", "\n")
    return count + 1
end

-- The contents of the file `path`, which `option` names, of at most so many bytes; raises one line for a file that
-- cannot be read, is empty or no UTF-8.
function text_file.read(option, path, most)
    local function refuse(rule) error(string.format("%s: %s: %s", option, path, rule), 0) end
    local bytes, message = host.read(path, most or most_bytes)
    if not bytes then error(option .. ": " .. message, 0) end
    if bytes == "" then refuse "is empty" end
    local valid, at = utf8.len(bytes)
    if not valid then refuse(string.format("byte %d, in line %d: is not UTF-8", at, line_of(bytes, at))) end
    local zero = bytes:find("\0", 1, true)
    if zero then refuse(string.format("byte %d, in line %d: is zero: must be text", zero, line_of(bytes, zero))) end
    return bytes
end

return text_file
