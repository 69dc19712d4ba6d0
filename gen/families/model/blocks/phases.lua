-- A block's steps in phases that threads can share: within a phase no token needs what another one makes, and every
-- token has left a phase before the next one begins.
local cost = require "gen.plan.cost"

local phases = {}

-- The kernels of part `part` of the FFN of a block for few tokens and for many, for variant `v`: { few, many, threshold
-- }; nil: a chunk of it is always few, or always many.
function phases.kernels(part, v)
    local many, few = table.unpack(part.plan.variants[v.number].stages)
    if not few or few.up_to >= v.chunk then return nil end
    return { few = few.names.ffn, many = many.names.ffn, threshold = few.up_to }
end

-- Whether steps of `list` go through spans of tokens, and whether the kernels of an FFN among them depend on how many
-- tokens there are.
local function facts_of(list, v)
    local spans, by_count = false, false
    for _, step in ipairs(list) do
        spans = spans or step.op == "append" or step.op == "attend" or step.op == "sum"
        for _, part in ipairs(step.op == "lookup" and step.parts or {}) do
            by_count = by_count or phases.kernels(part, v) ~= nil
        end
    end
    return spans, by_count
end

-- The phases of the steps `before` and `after` of blocks of `shape` for variant `v`: { word, doc, steps, alone: whether
-- one thread takes all tokens in their order, spans, by_count: as above }. shared: threads share a phase.
function phases.of(shape, before, after, v, shared)
    local list = {}
    local function add(word, doc, steps, alone)
        if #steps == 0 then return end
        local spans, by_count = facts_of(steps, v)
        list[#list + 1] = {
            word = word,
            doc = doc,
            steps = steps,
            alone = alone or false,
            spans = spans,
            by_count = shared and by_count,
        }
    end
    if not shared and (shape.causal or shape.delivered) then
        add("block", "A block", table.move(after, 1, #after, #before + 1, table.move(before, 1, #before, 1, {})))
        return list
    end
    local queries_too = false
    for _, step in ipairs(before) do
        queries_too = queries_too or step.of_call
    end
    local keys = queries_too and "Queries, and keys and values" or "Keys and values"
    if shape.ring then
        add("make_keys", keys .. " of a block", before)
    else
        add("fill_cache", keys .. " of a block, these into the cache", before)
        add("attend_and_ffn", "Attention of a block and what follows it", after)
        return list
    end
    -- What enters a ring pushes out what tokens before it still see.
    local queries, attend, rest = {}, {}, {}
    for _, step in ipairs(after) do
        local part = step.op == "attend" and attend or #attend > 0 and rest or queries
        part[#part + 1] = step
    end
    add("make_queries", "Queries of a block", queries)
    add("attend_in_order", "Attention of a block, in the order of the tokens", attend, true)
    add("project_and_ffn", "What follows attention in a block", rest)
    return list
end

-- The tokens that a thread takes at least of a chunk of variant `v`: { many, few: of calls of up to `threshold` tokens,
-- nil: the same }. maps, parts: of a block.
function phases.part(v, maps, parts)
    local flops, all, many, few, threshold = 0, 0, {}, {}, nil
    for _, part in ipairs(parts) do
        all = all + part.count
    end
    for _, map in ipairs(maps) do
        flops = flops + 2 * map.words
    end
    for _, part in ipairs(parts) do
        local own, kernels = part.plan.variants[v.number].stages, phases.kernels(part, v)
        flops = flops + 1e6 * part.plan.mflop.folded * part.count / all
        if own[2] then few[#few + 1] = own[2].pass end
        if kernels then threshold = math.min(threshold or kernels.threshold, kernels.threshold) end
        many[#many + 1] = (kernels or not own[2]) and own[1].tile or own[2].pass
    end
    -- Tiles add in another order than vectors, which take calls of less than 16 tokens.
    if v.product.tiles then many[#many + 1] = v.product.tiles.from end
    local least = cost.tokens_worth_a_thread(flops / 1e6)
    local part = { many = cost.part(v.chunk, least, many), few = threshold and cost.part(v.chunk, least, few) }
    if part.few == part.many then part.few = nil end
    part.threshold = part.few and threshold
    return part
end

return phases
