-- What the templates of a run of blocks print: from the plan's numbers to the names, lists and words that a template
-- loops over.
local activation_table = require "gen.families.model.blocks.activation_table"
local barriers = require "gen.print.barriers"
local dtype = require "gen.plan.dtype"
local byte_products = require "gen.isa.parts.byte_products"
local figures = require "gen.plan.figures"
local kernels = require "gen.families.lookup.print"
local layout = require "gen.families.model.blocks.layout"
local expression = require "gen.isa.expression"
local literal = require "gen.print.literal"
local phases = require "gen.families.model.blocks.phases"
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

-- What loads a vector of elements of `type`: load(base, at).
function print_run.loader(isa, type)
    return function(base, at)
        if type.plain then return isa.load_unaligned(base, at) end
        return isa["load_" .. type.name](expression.sum(base, at))
    end
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

-- How a product of rounded inputs sums them: the C type of a vector of sums, what they start from (a word behind the
-- inputs, `started`, or nothing), and the words of their dot product, of two at a time, or nil, and of that of
-- softmax's weights, which are never negative, and values. type: of weights in groups, nil: they are in none. The word
-- that a group starts from has two halves, which beside 4 bits instruction sets that can sum by themselves, until
-- `total` adds them up.
local function sums_of(rounded, isa, type)
    if not rounded or not rounded.integers then
        return { type = isa.vector, start = isa.zero, dot = isa.dot_bf16, dot_weights = isa.dot_bf16 }
    end
    local products = byte_products(isa, rounded.levels)
    local narrow, dot, dot_two = products.dot_narrow, products.dot, products.dot_two
    local function itself(sum) return sum end
    if type and type.bits == 8 and isa.dot_b8 then
        return { start = isa.index_zero, started = false, dot = isa.dot_b8, total = itself }
    end
    if type and type.bits == 4 and isa.dot_halves then
        return { start = isa.index_broadcast, dot = isa.dot_halves, total = isa.add_halves }
    end
    if type then
        local form = "((int16_t) %s + (int16_t) (%s >> 16))"
        if type.bits == 8 then form = "(" .. type.offset // 8 .. " * " .. form .. ")" end
        local function start(word) return isa.index_broadcast("(uint32_t) " .. form:format(word, word)) end
        return { start = start, dot = type.bits == 8 and dot or narrow, total = itself }
    end
    if isa.dot_s8 and dot ~= narrow then
        return { type = isa.index, start = isa.index_zero, started = false, dot = isa.dot_s8, dot_weights = narrow }
    end
    local start = isa.index_broadcast
    return { type = isa.index, start = start, started = true, dot = dot, dot_two = dot_two, dot_weights = dot }
end

-- How groups of inputs lie in words (gen/families/model/blocks/layout.lua), of weights of `type`, and what unpacks them
-- with `isa`; of inputs of a word, from its lowest bits on, and of inputs one after the other: what the floats of
-- that are still to be multiplied by. At least as many as lanes of the latter. panel: outputs side by side.
function print_run.groups(type, isa, panel)
    local factors, of_inputs, group = {}, {}, layout.group(type, panel)
    for b, input in ipairs(group.order) do
        factors[b] = literal.float(b < type.weights and 2.0 ^ (type.bits * (1 - b)) or 1.0)
        for at = input + 1, math.max(isa.lanes, type.weights), type.weights do
            of_inputs[at] = factors[b]
        end
    end
    return {
        factors = factors,
        repeats = #of_inputs,
        factors_of_inputs = table.concat(of_inputs, ", "),
        inputs = type.groups,
        of_word = type.weights,
        minimum = type.minimum or false,
        scales_text = ("[%d] scales in half precision%s"):format(panel, type.minimum and " and as many minima" or ""),
        weights_text = type.minimum and "in units of the scale, more than the minimum"
            or type.offset .. " more than in units of the scale",
        words = group.words,
        first_word = group.first_word,
        order = group.order,
        bits = type.bits,
        offset = type.offset,
        below_zero = literal.float(-type.offset),
        unpack = type.bits == 8 and isa.unpack_i8 or isa.unpack_i4,
        inputs_of_row = type.weights // 4, -- words of rounded inputs to a word of weights
    }
end

-- What prints a vector of outputs of a token of rounded inputs: sum unit scale + bias, or sum + bias.
local function outputs_of(rounded, isa)
    return function(sum, unit, at)
        local bias = isa.load_unaligned("bias", at)
        if not rounded.integers then return isa.add(sum, bias) end
        return isa.fma(isa.float_of(sum), isa.mul(isa.broadcast(unit), isa.load_unaligned("scale", at)), bias)
    end
end

-- What a product by tiles prints, false: there is none.
local function tiles_of(p, v)
    local rounded, tiles = p.rounded, v.product.tiles
    return tiles and {
        sums = sums_of(rounded, v.isa),
        outputs = outputs_of(rounded, v.isa),
        dot = v.isa[tiles.word],
        epilogue = false,
    } or false
end

local function product_values(p, v, values)
    values.product, values.rounded, values.tiles = v.product, p.rounded, tiles_of(p, v)
    values.sums, values.outputs = sums_of(p.rounded, v.isa, p.type.groups and p.type), outputs_of(p.rounded, v.isa)
    values.barriers = function(list) return barriers(p, v.isa, list) end
    values.load_weights = not p.type.groups and print_run.loader(v.isa, p.type)
    values.groups = p.type.groups and print_run.groups(p.type, v.isa, layout.panel) or false
end

-- The file of the product of weights, of a run of blocks or of a model.
function print_run.product(p, v)
    local form = p.rounded and (p.type.groups and "product_group_words" or "product_words") or "product"
    local template = "templates/model/blocks/" .. form .. ".c"
    return print_run.file(p, v, template, v.names.product, "product", product_values)
end

local function attention_values(p, v, values)
    local isa, cache_type = v.isa, p.shape.cache.type
    -- Rows of keys are converted to floats before they are read.
    local read_type = p.shape.from_keys and dtype.get "f32" or cache_type
    values.attention, values.cache_type = v.attention, read_type
    values.cached_type = cache_type
    values.dots = p.shape.cache.words and setmetatable({
        integers = p.shape.cache.words.integers or false,
        sums = sums_of(p.shape.cache.words, isa),
    }, { __index = p.shape.cache.words }) or false
    local cap = p.shape.soft_cap
    values.cap = cap and { text = ("%.9g"):format(cap), factor = literal.float(cap), inverse = literal.float(1 / cap) }
        or false
    values.load_cached = print_run.loader(isa, read_type)
end

-- What attention by tables prints of numbers, of a run of blocks of `shape`; training: what training calls.
function print_run.of_tables(shape, training)
    local lsh = shape.lsh
    return {
        training = training,
        chance = {
            tables = literal.float(lsh.tables),
            inverse_width = literal.float(1 / shape.width),
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

-- The weights of a layer as the kernels of each part of its FFN find them: { count, fields: { name, from } }.
local function lookups_of(p)
    local lookups = {}
    for i, part in ipairs(p.parts) do
        local fields = {}
        for n, section in ipairs(part.sections) do
            local step = section.layers > 1 and p.names.constant(section.name:upper() .. "_LAYER")
            local at = step and " + layer * " .. step or ""
            fields[n] = { name = section.field, from = "weights->" .. section.name .. at }
        end
        lookups[i] = { count = part.count, fields = fields }
    end
    return lookups
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

local function blocks_values(p, v, values)
    local shape = p.shape
    values.structs = setmetatable({
        lookups = lookups_of(p),
        uses_layer = shape.layers > 1,
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
    values.before, values.after = p.before, p.after
    values.activation_table = p.rounds_activated and v.isa.entry and activation_table.of(shape.activation) or false
    values.float_sums, values.sums = p.float_sums, p.sums or false
    values.activation, values.scale = shape.activation or false, literal.float(shape.scale)
    values.norms = norms_of(p)
    print_run.rounding_values(v.isa, shape.rounded, p.rounded_inputs, values)
    values.tiles = tiles_of(p, v)
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
