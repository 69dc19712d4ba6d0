-- Rules about files that commands share.
local host = require "host"

local files = {}

-- Raises one line if writing `path`, the value of `option`, would overwrite one of the files that the command reads.
function files.not_over(option, path, inputs)
    for _, input in ipairs(inputs) do
        if host.same_file(path, input) then error(option .. ": " .. path .. ": is the input " .. input .. ": choose another file", 0) end
    end
end

return files
