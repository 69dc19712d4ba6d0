-- Eviction from the folder of a cache: files that were not used for longest make room.
local host = require "host"
local process = require "process"

-- Removes files of `folder` whose names end in `suffix` until `bytes` more have room within `most`.
return function(folder, suffix, bytes, most)
    local list, total = {}, bytes
    for _, name in ipairs(host.list(folder) or {}) do
        local facts = process.file_facts(folder .. "/" .. name)
        if facts and name:sub(-#suffix) == suffix then
            list[#list + 1] = { path = folder .. "/" .. name, bytes = facts.bytes, modified = facts.modified }
            total = total + facts.bytes
        end
    end
    table.sort(list, function(a, b)
        if a.modified ~= b.modified then return a.modified < b.modified end
        return a.path < b.path
    end)
    for _, file in ipairs(list) do
        if total <= most then return end
        host.remove(file.path)
        total = total - file.bytes
    end
end
