-- LookupFFNs with fewer tables, for firmware that does not fit; harness/families/list.lua says what the fields mean.
local fewer_tables = { text = "h = %d, trained anew" }

function fewer_tables.most(m) return m.h - 1 end

function fewer_tables.with(m, h)
    local copy = {}
    for key, value in pairs(m) do
        copy[key] = value
    end
    copy.h = h
    return copy
end

return fewer_tables
