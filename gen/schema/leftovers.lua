-- What is left over: tensors of a checkpoint that a model leaves out, which are refused, since without them it would
-- compute something else; and names that the option --ignore allows.
local misuse = require "gen.schema.misuse"
local leftovers = {}

local most_named = 8
local most_reasons = 3
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
function leftovers.without(names, ignore)
    local kept, patterns = {}, patterns_of(ignore)
    for _, name in ipairs(names) do
        local ignored = false
        for _, row in ipairs(patterns) do
            ignored = ignored or name:find(row.pattern) ~= nil
        end
        if not ignored then kept[#kept + 1] = name end
    end
    table.sort(kept)
    return kept
end

-- Raises one line for a name of the option --ignore, `ignore`, that is none of the tensors `found`, by name, of the
-- checkpoint `path`: it is misspelt.
function leftovers.check_ignored(path, found, ignore)
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

-- Raises one line for the tensors `names` of the checkpoint `path`, if there are any. reason(m, name): why model `m`
-- leaves that tensor out, or what would help; nil: nobody knows.
function leftovers.refuse(path, m, names, reason)
    if not names[1] then return end
    local shown, reasons, known = {}, {}, {}
    for i, name in ipairs(names) do
        if i <= most_named then shown[i] = name:sub(1, longest_name) end
        local text = reason(m, name)
        if text and not known[text] and #reasons < most_reasons then
            reasons[#reasons + 1], known[text] = text, true
        end
    end
    local more = #names > most_named and string.format(" and %d more", #names - most_named) or ""
    error(
        string.format(
            "%s: tensor%s %s%s: %s no part of model %s%s; --ignore PATTERNS leaves %s out",
            path,
            names[2] and "s" or "",
            table.concat(shown, ", "),
            more,
            names[2] and "are" or "is",
            m.name,
            reasons[1] and ": " .. table.concat(reasons, "; ") or "",
            names[2] and "them" or "it"
        ),
        0
    )
end

return leftovers
