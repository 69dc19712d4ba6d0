-- Plans how the rows that a token takes of a table are chosen: the best one, the two or m best ones, or all of them.

local neighbours = {}

-- `lanes` groups of bits at a time; `spread`: the lanes are tables of one token. Returns
--   name      of the function that hashes the lanes, after <helper>_, and the template that has it
--   bytes     of the buffer `vertices` that it works in, 0: none
-- and for m > 1
--   at        offsets of the parts of that buffer: lists [count][lanes] and, to be spread, scores and codes [m][lanes]
--   spread
-- and where m > 2 or all rows are taken
--   lists     true: the function works in lists of vertices
--   count     vertices in a list, a power of two, which grows from one vertex with the first `grown` bits
function neighbours.plan(shape, lanes, spread)
    if shape.neighbours == 1 then
        return { name = "hash_best", template = "templates/lookup/shared/hash_best.c", bytes = 0 }
    end
    local all = shape.neighbours == shape.rows
    local name = all and "hash_all" or shape.neighbours == 2 and "hash_two" or "hash_top_m"
    local plan = {
        name = name,
        template = "templates/lookup/shared/" .. name .. ".c",
        bytes = 0,
        at = {},
        grown = 0,
        lists = name ~= "hash_two",
        spread = spread,
    }
    while 1 << plan.grown < shape.neighbours do
        plan.grown = plan.grown + 1
    end
    plan.count = 1 << plan.grown
    local function add(name, bytes)
        plan.at[name] = plan.bytes
        plan.bytes = plan.bytes + bytes
    end
    local function add_list(name) add(name, plan.count * lanes * 4) end
    if all then
        if shape.score.share then add_list "share" end
        if shape.score.along then add_list "along" end
    elseif plan.lists then
        add_list "cost"
        add_list "flips"
    end
    if spread then
        if shape.score.scored then add("score", shape.neighbours * lanes * 4) end
        add("code", shape.neighbours * lanes * 2)
    end
    return plan
end

return neighbours
