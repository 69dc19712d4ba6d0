-- Figures as people read them.
local figures = {}

-- 33554432 as "32.0 MiB".
function figures.bytes(n)
    for _, unit in ipairs { { 1 << 30, "GiB" }, { 1 << 20, "MiB" }, { 1 << 10, "KiB" } } do
        if n >= unit[1] then return string.format("%.1f %s", n / unit[1], unit[2]) end
    end
    return n .. " bytes"
end

-- The instruction sets of plan `p`, as --isa takes them.
function figures.sets(p)
    local names = {}
    for i, v in ipairs(p.variants) do
        names[i] = v.isa.name
    end
    return table.concat(names, ",")
end

-- 33554432 as "33,554,432".
function figures.grouped(n)
    local text = tostring(n):reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", "")
    return text
end

-- "1 table", "8 tables"; `many` (optional): the word for several.
function figures.plural(n, one, many) return n .. " " .. (n == 1 and one or many or one .. "s") end

-- A number of weights in billions or millions, as papers write it.
function figures.rounded(n) return n >= 1e9 and string.format("%.1fB", n / 1e9) or string.format("%.1fM", n / 1e6) end

return figures
