-- What the uses of tables' rows say: how many rows are used, the entropy of the codes, and which tables collapse.
local tables = {}

local collapsed = 0.5 -- of the bits of a code: below, most rows are for nothing

-- The uses of `tensors` (uses() of harness/train/lua_train.c), a row each: { layer, tables, rows (of a table), used
-- (mean), least (used of one table), entropy (mean), lowest (entropy of one table), collapsed (how many tables) }.
function tables.summary(tensors, uses)
    local list = {}
    for i, tensor in ipairs(tensors) do
        local each = uses[i]
        if each and #each > 0 then
            local row = { layer = tensor.layer or #list, tables = #each, rows = tensor.tables, collapsed = 0 }
            row.used, row.entropy, row.least, row.lowest = 0, 0, math.huge, math.huge
            for _, one in ipairs(each) do
                row.used, row.entropy = row.used + one[1] / #each, row.entropy + one[2] / #each
                row.least, row.lowest = math.min(row.least, one[1]), math.min(row.lowest, one[2])
                if one[2] < collapsed * math.log(tensor.tables, 2) then row.collapsed = row.collapsed + 1 end
            end
            list[#list + 1] = row
        end
    end
    return list
end

-- The warning for a row of the summary, nil: nothing is wrong.
function tables.warning(row)
    if row.collapsed == 0 then return nil end
    return string.format(
        "layer %d: %d of %d tables collapse: codes of as little as %.1f of %.0f bits, %.0f of %d rows used; "
            .. "a smaller --projection-rate helps",
        row.layer,
        row.collapsed,
        row.tables,
        row.lowest,
        math.log(row.rows, 2),
        row.least,
        row.rows
    )
end

return tables
