-- One digest of several texts: other texts, or other ends of them, have another one.
local host = require "host"

-- The SHA-256 of those of `parts`, a list of strings. These have one length, so that it is plain where each ends.
return function(parts)
    local list = {}
    for i, part in ipairs(parts) do
        list[i] = host.sha256(part)
    end
    return host.sha256(table.concat(list))
end
