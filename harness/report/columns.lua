-- Tables that bench prints from lists of columns { head, width, value(result) }; a negative width aligns to the left.
local counted = require "harness.report.counted"

local columns = {}

-- The value of `key` in result `r`, "dense.ffn" that of a table in it; nil: there is none.
local function value_of(r, key)
    for word in key:gmatch "[^.]+" do
        r = r and r[word]
    end
    return r
end

-- Columns of rows { head, width, key, format }: the value of a key of results as it is, or in a format, "%" that of a
-- share; `only`: whether it is said of a result. A row whose third field is a function is a column already.
function columns.of(rows)
    local list = {}
    for i, row in ipairs(rows) do
        local head, width, key, form = table.unpack(row)
        list[i] = type(key) == "function" and row
            or {
                head,
                width,
                function(r)
                    local value = (not row.only or row.only(r)) and value_of(r, key) or nil
                    if not value or not form then return value end
                    return form == "%" and string.format("%.0f %%", 100 * value) or string.format(form, value)
                end,
                several = row.several,
            }
    end
    return list
end

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
