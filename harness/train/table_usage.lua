-- What the uses of tables' rows say: how many rows each table uses, the entropy of its codes, and which ones collapse.
local json = require "json"

local table_usage = {}

local collapsed = 0.5 -- of the bits of a code: below, most rows are for nothing
local most_named = 8 -- tables in a line

-- Whether a table of so many rows whose codes have `entropy` bits has collapsed.
function table_usage.has_collapsed(entropy, rows) return entropy < collapsed * math.log(rows, 2) end

-- The uses of `tensors` (uses() of harness/train/lua_train.c), a row each: { layer, tables, rows (of a table), used
-- (mean), least (used of one table), entropy (mean), lowest (entropy of one table), collapsed (how many tables), and of
-- every table rows_used and entropies, to hundredths of a bit }.
function table_usage.summary(tensors, uses)
    local list = {}
    for i, tensor in ipairs(tensors) do
        local each = uses[i]
        if each and #each > 0 then
            local row = { layer = tensor.layer or #list, tables = #each, rows = tensor.tables, collapsed = 0 }
            row.used, row.entropy, row.least, row.lowest = 0, 0, math.huge, math.huge
            row.rows_used, row.entropies = json.array {}, json.array {}
            for k, one in ipairs(each) do
                row.used, row.entropy = row.used + one[1] / #each, row.entropy + one[2] / #each
                row.least, row.lowest = math.min(row.least, one[1]), math.min(row.lowest, one[2])
                row.rows_used[k], row.entropies[k] = one[1], tonumber(string.format("%.2f", one[2]))
                if table_usage.has_collapsed(row.entropies[k], row.rows) then row.collapsed = row.collapsed + 1 end
            end
            list[#list + 1] = row
        end
    end
    return list
end

-- The numbers from 0 of the tables in a row of the summary that have collapsed and have no more entropy than in the row
-- of the same layer `before` it (nil: none): those that fill up are on their way.
function table_usage.collapsing(row, before)
    local list = {}
    for k, entropy in ipairs(row.entropies) do
        if before and table_usage.has_collapsed(entropy, row.rows) and entropy <= before.entropies[k] then
            list[#list + 1] = k - 1
        end
    end
    return list
end

-- The warning for the tables of a row of the summary with these numbers, one or more.
function table_usage.warning(row, numbers)
    local lowest, least, names = math.huge, math.huge, {}
    for i, number in ipairs(numbers) do
        lowest = math.min(lowest, row.entropies[number + 1])
        least = math.min(least, row.rows_used[number + 1])
        if i <= most_named then names[i] = tostring(number) end
    end
    local more = #numbers > most_named and string.format(" and %d more", #numbers - most_named) or ""
    return string.format(
        "layer %d: %d of %d tables collapse (%s%s): codes of as little as %.1f of %.0f bits, %d of %d rows used; "
            .. "a smaller --projection-rate helps",
        row.layer,
        #numbers,
        row.tables,
        table.concat(names, ", "),
        more,
        lowest,
        math.log(row.rows, 2),
        least,
        row.rows
    )
end

return table_usage
