-- How two lists of numbers go together: Pearson's and Spearman's correlation.
local correlation = {}

local function mean(list)
    local sum = 0.0
    for _, value in ipairs(list) do
        sum = sum + value
    end
    return sum / #list
end

-- Pearson's correlation; NaN where one of the lists is constant.
function correlation.pearson(a, b)
    local mean_a, mean_b, together, of_a, of_b = mean(a), mean(b), 0.0, 0.0, 0.0
    for i = 1, #a do
        local x, y = a[i] - mean_a, b[i] - mean_b
        together, of_a, of_b = together + x * y, of_a + x * x, of_b + y * y
    end
    return together / math.sqrt(of_a * of_b)
end

-- Ranks from 1 on; equal values share the mean of theirs.
function correlation.ranks(list)
    local order, ranks = {}, {}
    for i = 1, #list do
        order[i] = i
    end
    table.sort(order, function(i, j)
        if list[i] ~= list[j] then return list[i] < list[j] end
        return i < j
    end)
    local first = 1
    while first <= #order do
        local last = first
        while last < #order and list[order[last + 1]] == list[order[first]] do
            last = last + 1
        end
        for place = first, last do
            ranks[order[place]] = (first + last) / 2
        end
        first = last + 1
    end
    return ranks
end

-- Spearman's: Pearson's of the ranks.
function correlation.spearman(a, b) return correlation.pearson(correlation.ranks(a), correlation.ranks(b)) end

return correlation
