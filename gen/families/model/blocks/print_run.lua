-- What the templates of a run of blocks print: from the plan's numbers to the names, lists and words that a template
-- loops over.
local activation_table = require "gen.families.model.blocks.activation_table"
local dtype = require "gen.plan.dtype"
local byte_products = require "gen.isa.parts.byte_products"
local figures = require "gen.plan.figures"
local kernels = require "gen.families.lookup.print"
local layout = require "gen.families.model.blocks.layout"
local literal = require "gen.print.literal"
local phases = require "gen.families.model.blocks.phases"
local print_product = require "gen.families.model.blocks.print_product"
local prologue = require "gen.print.prologue"
local structs = require "gen.families.model.blocks.structs"

local print_run = {}

-- Which tokens the blocks are told to take.
local function tokens_parameters(p)
    return p.shape.sequences and "const size_t *offsets, size_t sequences" or "size_t first, size_t tokens"
end

-- What prototypes of plan `p` read.
function print_run.prototypes(p)
    local parts, dense = {}, false
    for i, part in ipairs(p.parts) do
        parts[i] = {
            weights = part.plan.names.weights,
            sections = part.plan.sections,
            -- what prototypes of a LookupFFN's kernels read, under the part's names
            kernels = {
                names = part.plan.names,
                shape = part.plan.shape,
                variants = part.plan.variants,
                constants = part.plan.constants,
                openmp = false,
                makes_codes = part.plan.makes_codes,
                norm = false,
                projection_parameters = kernels.projection_parameters,
                work_text = kernels.work_text,
            },
        }
    end
    for _, v in ipairs(p.variants) do
        dense = dense or #p.maps > 0 and not v.shares_product
    end
    return {
        names = p.names,
        shape = p.shape,
        parts = parts,
        variants = p.variants,
        dense = dense,
        constants = p.constants,
        structs = p.structs,
        tokens_parameters = tokens_parameters(p),
    }
end

-- Whether kernels of plan `p` have inline functions, and whether they have register barriers.
function print_run.helpers(p)
    local inlines, barriers_too = false, false
    for _, part in ipairs(p.parts) do
        inlines = inlines or kernels.inlines(part.plan)
        barriers_too = barriers_too or kernels.register_barriers(part.plan)
    end
    for _, v in ipairs(p.variants) do
        barriers_too = barriers_too or p.shape.rounded ~= nil and v.isa.register_barrier ~= nil
    end
    return inlines, barriers_too
end

-- A kernel file of variant `v` of plan `p`, called `helper` in names: { template, symbol, values }, with values that
-- extend(p, v, values) adds.
function print_run.file(p, v, template, symbol, helper, extend)
    local values = {
        isa = v.isa,
        v = v,
        lanes = v.isa.lanes,
        symbol = symbol,
        prologue = prologue(p, v.isa),
        type = p.type,
        panel = layout.panel,
        keys = layout.keys,
        helper = p.names.helper(helper),
        matrix = structs.matrix(p).name,
    }
    extend(p, v, values)
    return { template = template, symbol = symbol, plan = p, values = values }
end

-- What the template that rounds inputs reads: rows of `inputs` inputs each, for kernels of `isa`.
function print_run.rounding_values(isa, rounded, inputs, values)
    values.rounded, values.rounded_rows = rounded or false, inputs
    local word = rounded
        and { storage = rounded.storage, rows = rounded.rows, levels = rounded.levels, offset = rounded.offset }
    values.rounding = rounded
            and rounded.integers
            and {
                projection = { word = word },
                rounded_rows = {},
                together_counts = {},
                round_runs = false,
                integers = { starts = true },
                store_inputs = function(base, at, parts) return isa.store_quads(base, at, table.unpack(parts)) end,
                dot_inputs = byte_products(isa, rounded.levels).dot_narrow,
            }
        or false
end

-- The file of the product of weights, of a run of blocks or of a model.
function print_run.product(p, v)
    local template = "templates/model/blocks/product.c"
    return print_run.file(p, v, template, v.names.product, "product", print_product.values)
end

local function attention_values(p, v, values)
    local isa, cache_type = v.isa, p.shape.cache.type
    -- Rows of keys are converted to floats before they are read.
    local read_type = p.shape.from_keys and dtype.get "f32" or cache_type
    values.attention, values.cache_type = v.attention, read_type
    values.cached_type = cache_type
    values.dots = p.shape.cache.words and setmetatable({
        integers = p.shape.cache.words.integers or false,
        sums = print_product.sums(p.shape.cache.words, isa),
    }, { __index = p.shape.cache.words }) or false
    local cap = p.shape.soft_cap
    values.cap = cap and { text = ("%.9g"):format(cap), factor = literal.float(cap), inverse = literal.float(1 / cap) }
        or false
    values.load_cached = print_product.loader(isa, read_type)
end

-- What attention by tables prints of numbers, of a run of blocks of `shape`; training: what training calls.
function print_run.of_tables(shape, training)
    local lsh = shape.lsh
    return {
        training = training,
        chance = {
            count = lsh.tables,
            tables = literal.float(lsh.tables),
            inverse_width = literal.inverse(shape.width),
            eps_text = string.format("%.9g", lsh.eps),
            least = literal.float((lsh.tables * lsh.eps) ^ 2),
        },
    }
end

local function table_values(p, _, values)
    for name, value in pairs(print_run.of_tables(p.shape, false)) do
        values[name] = value
    end
end

-- How a block makes values of sums of keys: { panel_step: words from panel to panel of the map; sums, pitch: inputs,
-- their distance; head_pitch: of its outputs, if panels are not those of heads }; false: it does not.
local function made_of(p)
    local map, rounded = nil, p.shape.rounded
    for _, step in ipairs(p.after) do
        map = step.values or map
    end
    if not map then return false end
    return {
        panel_step = layout.stored(layout.panel * layout.filled(map.inputs, p.type, rounded), p.type, rounded),
        sums = rounded and "rounded_sums" or "sums",
        pitch = rounded and tostring(layout.rounded_pitch(p.shape.e, rounded)) or p.names.constant "VALUE_PITCH",
        head_pitch = p.variants[1].buffers.head_pitch,
    }
end

-- The lines of `list` in C, separated.
local function listed(list, form)
    local texts = {}
    for i, item in ipairs(list) do
        texts[i] = form(item)
    end
    return table.concat(texts, ", ")
end

-- The functions that norm rows and heads: { key: the width of rows, or "heads " and the number of their norm, given:
-- what templates/math/norm.c takes }.
local function norms_of(p)
    local list, known, shape = {}, {}, p.shape
    local function add(key, name, layernorm, gains, width, eps)
        if known[key] then return end
        known[key] = true
        local given = { name = name, layernorm = layernorm, factors = false, gains = gains, width = width }
        given.eps = literal.float(eps)
        list[#list + 1] = { key = key, given = given }
    end
    for _, steps in ipairs { p.before, p.after } do
        for _, step in ipairs(steps) do
            local width = step.op == "norm" and (step.width or shape.d)
            local kind = shape.norm and shape.norm.kind
            if width then add(width, kind .. "_" .. width, kind == "layernorm", true, width, shape.norm.eps) end
        end
    end
    for i, norm in ipairs(shape.head_norms) do
        add("heads " .. i, norm.name, false, norm.gains, shape.width, norm.eps)
    end
    return list
end

-- What uses the linear maps of variant `v`, by letter: "product", a step that multiplies by it alone; or "fields",
-- where activations are joined to products, by `tiles`, and where values are made of keys. nil: no step does.
local function map_uses(v, tiles)
    local uses = {}
    for _, phase in ipairs(v.phases) do
        for _, step in ipairs(phase.steps) do
            local alone = step.op == "product" and not (tiles and step.activated)
            local map = step.map or step.values
            if map then uses[map.letter] = alone and "product" or uses[map.letter] or "fields" end
        end
    end
    return uses
end

local function blocks_values(p, v, values)
    local shape = p.shape
    values.structs = setmetatable({
        step_of = function(name) return p.names.constant(p.pitches[name]) end,
        full_flags = listed(shape.full_layers or {}, function(full) return full and 1 or 0 end),
        cache_places = listed(shape.cache.layers, function(own) return own.at end),
    }, { __index = p.structs })
    -- What comments call the LookupFFN of layers that are alike, and its kernels: { many, and if there are two, few,
    -- threshold }.
    values.looks_up = function(part)
        local ffn = part.plan.shape
        local columns = shape.qkv and ": q, k, v and output"
            or ffn.d_out > shape.d and ", the next block's q, k and v"
            or ""
        local doc = string.format("LookupFFN: %s, rows of %d%s", figures.plural(ffn.h, "table"), ffn.d_out, columns)
        return doc, p.threads and phases.kernels(part, v) or { many = part.plan.variants[v.number].names.ffn }
    end
    -- The gains, and offsets, of the norm that a step is; false: it has none.
    values.gains_of = function(step)
        if step.letter then return shape.head_norms[step.number].gains and "own." .. step.letter .. "_norm" end
        local gains = "own." .. shape.norms[step.number].word .. "_norm"
        return gains .. (shape.norm.kind == "layernorm" and ", " .. gains .. "_offset" or "")
    end
    values.tokens_parameters, values.threads = tokens_parameters(p), p.threads
    values.after, values.parts = p.after, p.parts
    values.activation_table = p.rounds_activated and v.isa.entry and activation_table.of(shape.activation) or false
    values.float_sums, values.sums = p.float_sums, p.sums or false
    values.activation, values.scale = shape.activation or false, literal.float(shape.scale)
    values.norms = norms_of(p)
    print_run.rounding_values(v.isa, shape.rounded, p.rounded_inputs, values)
    values.tiles = print_product.tiles(p, v)
    values.map_uses = map_uses(v, values.tiles)
    values.cache_type = shape.cache.type
    values.made = made_of(p)
end

-- The kernel files of variant `v` of plan `p`, as print_run.file has them.
function print_run.files(p, v)
    local files = {}
    if #p.maps > 0 and not v.shares_product then files[1] = print_run.product(p, v) end
    local template = "templates/model/blocks/" .. (p.shape.lsh and "table_attention" or "attention") .. ".c"
    local extend = p.shape.lsh and table_values or attention_values
    files[#files + 1] = print_run.file(p, v, template, v.names.attention, "attention", extend)
    -- a run of a model is called so by itself
    local helper = p.names.prefix == "" and "blocks"
    files[#files + 1] =
        print_run.file(p, v, "templates/model/blocks/blocks.c", v.names.blocks, helper, blocks_values)
    for _, part in ipairs(p.parts) do
        for _, file in ipairs(kernels.files(part.plan, part.plan.variants[v.number])) do
            file.plan = part.plan
            files[#files + 1] = file
        end
    end
    return files
end

return print_run
