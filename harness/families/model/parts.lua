-- Parts of a whole model that are timed: plans through the same templates with some of the steps, so that their kernels
-- are the same; and its dense twin.
local transformer_parts = require "harness.families.model.blocks.parts"
local validated = require "gen.model.validated"
local rules = require "gen.families.model.model"
local whole_plan = require "gen.families.model.plan"

local parts = {}

parts.cflags = transformer_parts.cflags

-- The FFN `ffn` of blocks of width `d`, dense where it looks up.
local function dense(ffn, d)
    if ffn.kind ~= "lookup" then return ffn end
    return { kind = "mlp", f = 4 * d, activation = "gelu" }
end

-- Model `m` with an MLP of f = 4 d and GELU instead of every LookupFFN; nil if it has none.
function parts.twin(m)
    if not rules.looks_up(m) then return nil end
    local changes = { name = m.name .. "_dense", ffn = dense(m.ffn, m.d) }
    if type(m.layers) == "table" then
        changes.layers = {}
        for i, entry in ipairs(m.layers) do
            local own, copy = entry.ffn or m.ffn, {}
            for key, value in pairs(entry) do
                copy[key] = value
            end
            copy.ffn = dense(own, entry.d or m.d)
            changes.layers[i] = copy
        end
    end
    local twin = transformer_parts.changed(m, changes)
    twin.tokenizer = nil
    return validated.note_part(twin, m)
end

-- Model `m` without what stands behind its blocks, but for a pool, before which they may end earlier.
function parts.body(m)
    local body, pool = transformer_parts.changed(m, {}), m.output and m.output.pool
    body.output, body.tokenizer = pool and { pool = pool, norm = m.output.norm } or nil, nil
    return validated.note_part(body, m)
end

-- Blocks without attention: the queries are its result.
local function without_attention(maps, before, after)
    local function left(steps)
        local list = {}
        for _, step in ipairs(steps) do
            if step.op == "attend" then
                list[#list + 1] = { op = "copy", from = step.from, to = step.to, width = step.width }
            elseif step.op ~= "append" then
                list[#list + 1] = step
            end
        end
        return list
    end
    return maps, left(before), left(after)
end

local of_ffn = { M = true, G = true, O = true }

-- Blocks whose FFN copies its input, with `maps` as they are: the weights stay where they are.
local function without_ffn(maps, before, after)
    local list, from = {}, nil
    for _, step in ipairs(after) do
        local letter = step.op == "product" and step.map.letter or step.op == "round" and step.letter
        if step.op == "lookup" or step.op == "product" and letter == "O" then
            local width = step.width or step.map.outputs
            list[#list + 1] = { op = "copy", from = from or step.from, to = step.to, width = width }
        elseif of_ffn[letter] then
            from = step.source or from
        elseif step.op == "sum" then
            list[#list + 1] = { op = "sum", a = step.a }
        elseif step.op ~= "activate" then
            list[#list + 1] = step
        end
    end
    return maps, before, list
end

local function without_both(maps, before, after) return without_ffn(without_attention(maps, before, after)) end

-- Blocks that hand on what they get, by the map of the skip connection where their widths differ; without one, as many
-- values as they have: nothing but times depends on the others.
local function without_blocks(maps, _, after, shape)
    local steps = { { op = "output", from = "in" } }
    if shape.input ~= shape.d then
        local width = math.min(shape.input, shape.d)
        steps = { { op = "copy", from = "in", to = "out", width = width }, { op = "output", from = "out" } }
    end
    for at, step in ipairs(after) do
        if step.op == "product" and step.map.letter == "S" then
            steps = { step, { op = "output", from = step.to } }
            if after[at - 1] and after[at - 1].op == "round" then table.insert(steps, 1, after[at - 1]) end
        end
    end
    return maps, {}, steps
end

-- What is left out of the blocks, by name.
parts.left_out = {
    { name = "no_attention", part = without_attention },
    { name = "no_ffn", part = without_ffn },
    { name = "no_both", part = without_both },
    { name = "no_blocks", part = without_blocks },
}

-- The plan of model `m` for one instruction set; part: what is left out of its blocks.
function parts.plan(m, isa, type, wanted, options, part)
    return whole_plan.build(m, { isa }, {
        type = type,
        cache = options.cache,
        activations = options.activations,
        tables = options.tables,
        projection = options.projection,
        schedule = wanted,
        facts = options.facts,
        part = part,
    })
end

-- µs of each stage from those of the whole and of what is left without its parts, by name. They do not add up exactly:
-- what is left out also leaves the caches to the others.
function parts.stages(us)
    return {
        embedding = us.no_blocks,
        products = us.no_both - us.no_blocks,
        attention = us.body - us.no_attention,
        ffn = us.body - us.no_ffn,
        head = us.whole - us.body,
    }
end

return parts
