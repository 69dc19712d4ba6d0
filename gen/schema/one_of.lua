-- The one line that refuses a value of the command line which is not of a list.
local misuse = require "gen.schema.misuse"

local one_of = {}

function one_of.contains(names, value)
    for _, name in ipairs(names) do
        if name == value then return true end
    end
    return false
end

-- Raises it for `value` of `what`, such as an option, if it is not of the list `names`.
function one_of.check(what, value, names)
    if one_of.contains(names, value) then return end
    misuse(string.format('%s: "%s": must be one of %s', what, tostring(value), table.concat(names, ", ")))
end

-- The words between the commas of `text`, each of which has to be of the list.
function one_of.words(what, text, names)
    local list = {}
    for word in (text .. ","):gmatch "([^,]*)," do
        one_of.check(what, word, names)
        list[#list + 1] = word
    end
    return list
end

return one_of
