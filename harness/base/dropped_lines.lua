-- One line about the lines of a log that were dropped, whatever log it is.
local figures = require "gen.plan.figures"

local dropped_lines = {}

local most_places = 3

-- The line about `list` { {line = number, reason} } of the log at `path`; nil if it is empty.
function dropped_lines.line(path, list)
    if #list == 0 then return nil end
    local places = {}
    for i = 1, math.min(most_places, #list) do
        places[i] = string.format("line %d %s", list[i].line, list[i].reason)
    end
    local more = #list > most_places and string.format(" and %d more", #list - most_places) or ""
    return string.format("%s: dropped %s: %s%s", path, figures.plural(#list, "line"), table.concat(places, "; "), more)
end

return dropped_lines
