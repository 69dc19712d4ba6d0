-- The patterns of the option --ignore: names with * and ?, of tensors or files that are left out.
local misuse = require "gen.schema.misuse"

local ignored = {}

local longest_name = 200

-- The names of the option --ignore and their Lua patterns, { glob, pattern }: * stands for any characters, ? for one.
local function patterns_of(text)
    local list = {}
    for glob in ((text or "") .. ","):gmatch "([^,]*)," do
        if glob == "" and text then
            misuse(string.format('--ignore: "%s": must be names, separated by commas', text))
        end
        local pattern = glob:gsub("%p", "%%%0"):gsub("%%%*", ".*"):gsub("%%%?", ".")
        list[#list + 1] = { glob = glob, pattern = "^" .. pattern .. "$" }
    end
    return text and list or {}
end

-- Those of `names` that match no pattern of the option --ignore, `ignore`, in order.
function ignored.without(names, ignore)
    local kept, patterns = {}, patterns_of(ignore)
    for _, name in ipairs(names) do
        local matched = false
        for _, row in ipairs(patterns) do
            matched = matched or name:find(row.pattern) ~= nil
        end
        if not matched then kept[#kept + 1] = name end
    end
    table.sort(kept)
    return kept
end

-- Raises one line for a pattern of the option --ignore, `ignore`, that matches none of the tensors `found`, by name, of
-- the checkpoint `path`: it is misspelt.
function ignored.check(path, found, ignore)
    for _, row in ipairs(patterns_of(ignore)) do
        local matches = false
        for name in pairs(found) do
            matches = matches or name:find(row.pattern) ~= nil
        end
        if not matches then
            error(string.format("--ignore: %s: %s has no such tensor", row.glob:sub(1, longest_name), path), 0)
        end
    end
end

return ignored
