-- Plans how the rows that a token takes of a table are chosen: the best one, the two or m best ones, or all of them.

local neighbours = {}

-- `lanes` groups of bits at a time; `spread`: the lanes are tables of one token. Returns
--   name      of the function that hashes the lanes, after <helper>_, and the template that has it
--   bytes     of the buffer `vertices` that it works in, 0: none
-- and for m > 1
--   list_count    lists [count][lanes] in that buffer; then, to be spread, scores and codes [m][lanes]
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
        list_count = 0,
        grown = 0,
        lists = name ~= "hash_two",
        spread = spread,
    }
    while 1 << plan.grown < shape.neighbours do
        plan.grown = plan.grown + 1
    end
    plan.count = 1 << plan.grown
    if all then
        plan.list_count = (shape.score.share and 1 or 0) + (shape.score.along and 1 or 0)
    elseif plan.lists then
        plan.list_count = 2 -- costs and flips
    end
    plan.bytes = plan.list_count * plan.count * lanes * 4
    if spread then plan.bytes = plan.bytes + shape.neighbours * lanes * (shape.score.scored and 6 or 2) end
    return plan
end

return neighbours
