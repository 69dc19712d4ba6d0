-- Straight-line code of an instruction set's words: transposes, and the steps that their results depend on.
local steps = {}

-- The steps { name, value } that the first `count` results depend on, in their order.
function steps.used(list, results, count)
    local needed, found = {}, {}
    local function need(expression)
        for word in expression:gmatch("[%a_][%w_]*") do
            needed[word] = true
        end
    end
    for i = 1, count do
        need(results[i])
    end
    for i = #list, 1, -1 do
        if needed[list[i].name] then
            table.insert(found, 1, list[i])
            need(list[i].value)
        end
    end
    return found
end

-- The sizes of the transposes that `columns` columns take: as many as lanes, and the last ones.
function steps.transposes(columns, lanes)
    local list = {}
    if columns >= lanes then list[1] = lanes end
    if columns % lanes > 0 then list[#list + 1] = columns % lanes end
    return list
end

return steps
