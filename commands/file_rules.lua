-- Rules about files that commands share.
local host = require "host"

local files = {}

-- Raises one line if writing `path`, the value of `option`, would overwrite one of the files that the command reads.
function files.not_over(option, path, inputs)
    for _, input in ipairs(inputs) do
        if host.same_file(path, input) then
            error(option .. ": " .. path .. ": is the input " .. input .. ": choose another file", 0)
        end
    end
end

-- Raises one line if `path`, the value of `option`, cannot become a file: before the work whose result it shall hold.
function files.can_become(option, path)
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
function files.json_can_hold(option, path)
    if not utf8.len(path) then error(string.format('%s: "%s": must be UTF-8 beside --json', option, path), 0) end
end

return files
