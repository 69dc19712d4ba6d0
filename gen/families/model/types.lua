-- The types of a model's weights, cached values, inputs of products and lookup FFNs, as options of its plan name them.
local dtype = require "gen.plan.dtype"
local misuse = require "gen.schema.misuse"
local rules = require "gen.families.model.model"

local types = {}

-- Rows of gen/plan/dtype.lua: { type, cache, activations: nil where products do not round their inputs, rounded: their
-- row `products`, without tiles where weights are in groups; looked: { tables, projection } of lookup FFNs, nil without
-- }. m: the model, nil: any one.
function types.of(options, m)
    local type = dtype.get(options.type, "type")
    local activations = dtype.activations(options.activations, type)
    local t = {
        type = type,
        activations = activations,
        rounded = activations and activations.products,
        cache = dtype.cached(options.cache, activations, m and (m.attention.shaped or m.attention.cache == "k")),
    }
    if t.rounded and type.groups then t.rounded = setmetatable({ tiles = false }, { __index = t.rounded }) end
    if m and rules.looks_up(m) or options.tables or options.projection then
        t.looked = {
            tables = options.tables and dtype.get(options.tables) or dtype.of_rows(type),
            projection = dtype.get(options.projection, "projection"),
        }
    end
    return t
end

-- Those of the types `t` for which instruction sets need more (isa_list.with_types). Integers are converted and need
-- nothing, unless inputs are integers, too, or rows of tables are summed.
function types.of_sets(t)
    local list = { t.rounded }
    if not t.type.integer_gather then list[#list + 1] = t.type end
    if not t.cache.integer_gather then list[#list + 1] = t.cache end
    if t.looked then
        list[#list + 1] = t.looked.tables
        if t.looked.projection.word.integers then list[#list + 1] = t.looked.projection end
    end
    return list
end

-- Raises one line for options that mean nothing where no block of model `m` looks up.
function types.check(m, options)
    for _, key in ipairs { "tables", "projection" } do
        if options[key] and not rules.looks_up(m) then
            misuse(string.format("--%s: %s: %s has no LookupFFN", key, options[key], m.name))
        end
    end
end

return types
