-- The types of a model's weights, cached values, inputs of products and lookup FFNs, as options of its plan name them.
local dense = require "gen.families.lookup.dense"
local dtype = require "gen.plan.dtype"
local misuse = require "gen.schema.misuse"
local rules = require "gen.families.model.model"

local types = {}

-- The row `products` of the activations, or nil, for weights of `type`: those in groups have no tiles, and it `groups`.
local function rounded_of(activations, type)
    local rounded = activations and activations.products
    if not (rounded and type.groups) then return rounded end
    return setmetatable({ tiles = false, groups = type.groups }, { __index = rounded })
end

-- Whether model `m` has linear maps outside of its blocks.
local function has_maps(m)
    local output, widths = m.output or {}, rules.widths(m)
    return output.head or output.classes or output.dense or widths.embedding ~= widths.input
end

-- What --type says of the types `t` of model `m`, without what follows from the rest.
local function text_of(t, m)
    local text = t.type.name
    if m and not m.embedding then return text end
    if t.head ~= t.type then text = text .. ",head=" .. t.head.name end
    local tied = m and m.tied
    if not tied and t.rows ~= dtype.of_rows(t.type) then text = text .. ",embedding=" .. t.rows.name end
    return text
end

-- Rows of gen/plan/dtype.lua: { type, of products of blocks; head, of the other ones; rows, of what is read row by row:
-- an embedding that is not tied; cache; activations: nil where products do not round their inputs; rounded,
-- head_rounded: their row `products` beside `type` and `head`; looked: { tables, projection, multiplied } of lookup
-- FFNs, the last one whether blobs have projections multiplied out, too; nil without; and `text`, what --type says }.
-- m: the model, nil: any one.
function types.of(options, m)
    local parts = dtype.of_parts(options.type)
    local type = parts.blocks
    local head = m and not m.tied and not (m.embedding and has_maps(m)) and type or parts.head
    local activations = dtype.activations(options.activations, type)
    dtype.activations(options.activations, head)
    local attention = m and m.attention or {}
    local plain = attention.shaped or attention.cache == "k" or m and rules.has_tables(m)
    local t = {
        type = type,
        head = head,
        rows = parts.embedding,
        activations = activations,
        rounded = rounded_of(activations, type),
        head_rounded = rounded_of(activations, head),
        cache = dtype.cached(options.cache, activations, plain),
    }
    t.text = text_of(t, m)
    if m and rules.looks_up(m) or options.tables or options.projection then
        t.looked = {
            tables = dtype.get(options.tables or options.training and "f32" or dtype.of_rows(type).name),
            projection = dtype.get(options.projection, "projection"),
            multiplied = options["multiply-out"] or nil,
        }
    end
    return t
end

-- Those of the types `t` for which instruction sets need more (isa_list.with_types). Integers are converted and need
-- nothing, unless inputs are integers, too, or rows of tables are summed.
function types.of_sets(t)
    local list, seen = { t.rounded }, {}
    for _, type in ipairs { t.type, t.head, t.rows, t.cache } do
        if not type.integer_gather and not seen[type] then list[#list + 1] = type end
        seen[type] = true
    end
    if t.looked then
        list[#list + 1] = t.looked.tables
        if t.looked.projection.word.integers then list[#list + 1] = t.looked.projection end
        if t.looked.multiplied then list[#list + 1] = dense.needs(t.looked.projection) end
    end
    return list
end

-- Raises one line for what --type says of parts that model `m` does not have, or that are one.
local function check_parts(m, text)
    local parts = dtype.of_parts(text)
    local function refuse(part, rule, ...)
        misuse(string.format("--type: %s=%s: ", part, parts.given[part]) .. rule:format(...))
    end
    for _, part in ipairs { "head", "embedding" } do
        if parts.given[part] and not m.embedding then refuse(part, "%s has blocks alone", m.name) end
    end
    if parts.given.head and not has_maps(m) then refuse("head", "%s has no head and no other map", m.name) end
    if not parts.given.embedding then return end
    if m.tied and parts.embedding ~= parts.head then
        refuse("embedding", "must be %s, as the head, which %s's embedding is", parts.head.name, m.name)
    end
    if parts.embedding.groups and m.embedding.projected then
        refuse("embedding", "must have no groups, as %s looks up its first block", m.name)
    end
end

-- Raises one line for options that mean nothing for model `m`: for types of parts that it does not have, unless
-- options.lacks_parts, and for those of lookup FFNs where no block looks up.
function types.check(m, options)
    if not options.lacks_parts then check_parts(m, options.type) end
    for _, key in ipairs { "tables", "projection" } do
        if options[key] and not rules.looks_up(m) then
            misuse(string.format("--%s: %s: %s has no LookupFFN", key, options[key], m.name))
        end
    end
end

return types
