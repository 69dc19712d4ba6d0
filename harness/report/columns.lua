-- Tables that bench prints from lists of columns { head, width, value(result) }; a negative width aligns to the left.
local counted = require "harness.report.counted"

local columns = {}

-- The columns of `list` that say something of a result.
function columns.said(list, results)
    local shown = {}
    for _, column in ipairs(list) do
        local said = false
        for _, r in ipairs(results) do
            said = said or column[3](r)
        end
        if said then shown[#shown + 1] = column end
    end
    return shown
end

-- Adds the head and a line for each result to `lines`, without columns that say nothing of any result.
function columns.add(lines, list, results)
    local shown, widths = columns.said(list, results), {}
    for i, column in ipairs(shown) do
        widths[i] = column[2]
        for _, r in ipairs(column[2] < 0 and results or {}) do -- names may be longer
            widths[i] = math.min(widths[i], -#(column[3](r) or "-"))
        end
    end
    local function add(cell, mark)
        local cells = {}
        for i, column in ipairs(shown) do
            cells[i] = string.format("%" .. widths[i] .. "s", cell(column) or "-")
        end
        lines[#lines + 1] = (table.concat(cells, " ") .. mark):gsub(" +$", "")
    end
    add(function(column) return column[1] end, "")
    for _, r in ipairs(results) do
        add(function(column) return column[3](r) end, counted.mark(r))
    end
end

return columns
