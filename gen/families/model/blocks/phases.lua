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

-- Buffers that step `step` reads and writes.
local function touched(step)
    return {
        step.from,
        step.to,
        step.rounded,
        step.a,
        step.b,
        step.k,
        step.v,
        step.gate,
        step.q_codes,
        step.k_codes,
    }
end

-- What a phase of the steps `list` of the blocks of `shape` needs: weights, layer, cache, x, y, positions (where tokens
-- stand), together (how many one thread would take), one (the number), names of buffers, memory (of these or others).
local function needs_of(shape, list, unpacks, by_count)
    local needs = { buffers = {} }
    for _, step in ipairs(list) do
        local of_layer = step.op == "norm"
            or step.op == "norm_heads" and shape.head_norms[step.number].gains
            or step.op == "product"
            or step.op == "lookup"
            or step.op == "attend" and (shape.unit or shape.shaped)
        local cached = step.op == "append" or step.op == "attend"
        of_layer = of_layer or cached and shape.lsh ~= nil
        local sums = step.op == "sum"
        of_layer = of_layer or step.values
        needs.weights = needs.weights or of_layer or cached and shape.rope ~= nil
        needs.layer = needs.layer or of_layer and shape.layers > 1 or step.op == "attend" and shape.full_layers ~= nil
        needs.cache = needs.cache or cached
        needs.positions = needs.positions or cached or sums
        needs.y = needs.y or step.op == "output" or sums
        needs.one = needs.one or step.op == "output" and step.from ~= nil or step.op == "copy"
        needs.memory = needs.memory or cached and shape.lsh ~= nil
        needs.memory = needs.memory or step.op == "attend" or step.op == "lookup" or step.op == "product" and unpacks
        needs.together = needs.together or step.op == "lookup" and by_count
        for _, name in pairs(touched(step)) do
            if name == "in" then
                needs.x = true
            elseif name then
                needs.buffers[name], needs.memory = true, true
            end
        end
    end
    return needs
end

-- The phases of the steps `before` and `after`: { word, doc, steps, alone: whether one thread takes all tokens in their
-- order, needs }. unpacks: products convert weights in scratch; by_count: an FFN's kernels depend on how many tokens
-- there are.
function phases.of(shape, before, after, unpacks, by_count)
    local list = {}
    local function add(word, doc, steps, alone)
        if #steps == 0 then return end
        list[#list + 1] = {
            word = word,
            doc = doc,
            steps = steps,
            alone = alone or false,
            needs = needs_of(shape, steps, unpacks, by_count),
        }
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
