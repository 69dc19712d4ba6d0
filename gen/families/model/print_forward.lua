-- What the kernel of a model's forward pass prints: what stands before and behind the blocks, and where its rows are.
local expression = require "gen.isa.expression"
local isa_list = require "gen.isa.list"
local layout = require "gen.families.model.blocks.layout"
local literal = require "gen.print.literal"
local print_product = require "gen.families.model.blocks.print_product"
local print_run = require "gen.families.model.blocks.print_run"

local sum = expression.sum

-- The products before and behind the blocks, as templates/model/multiply.c takes them, in the order of the pass; and
-- by the map { name, y, y_step }, where their outputs go: of the head, whose rows are results, one for the panels that
-- are full and one for the rest.
local function products_of(p)
    local list, by_map, panel, output = {}, {}, layout.panel, p.output
    local function add(map, first, panels, prefix, y, y_step)
        if panels == 0 then return end
        local function from(field, at) return sum("weights->" .. field, first > 0 and p.names.macro(at) or 0) end
        local fields = { { name = "weights", value = from(map.name, "HEAD_REST_WEIGHTS") } }
        if p.type.scaled then fields[2] = { name = "scales", value = from(map.name .. "_scales", "HEAD_REST") } end
        fields[#fields + 1] = { name = "bias", value = from(map.bias, "HEAD_REST") }
        fields[#fields + 1] = { name = "inputs", value = map.inputs }
        fields[#fields + 1] = { name = "panels", value = panels }
        local name = prefix .. map.name:gsub("%.", "_") -- of a map of a run of blocks, too
        local what = first > 0 and "panels of " .. map.name .. " from number " .. first .. " on" or map.name
        local of = "const " .. p.names.weights .. " *weights"
        list[#list + 1] = { name = name, what = what, of = of, fields = fields }
        by_map[map] = by_map[map] or {}
        table.insert(by_map[map], { name = name, y = y, y_step = y_step })
    end
    local function add_all(map, y)
        if map then add(map, 0, map.panels, "", y, map.pitch) end
    end
    add_all(p.embedding.map, "mapped")
    add_all(output.sums and output.sums.map, "mapped_means")
    add_all(output.dense, "features")
    local head = output.head
    if head then
        local full = head.outputs // panel
        add(head, 0, full, "", "y", head.outputs)
        if head.outputs % panel > 0 then add(head, full, 1, full > 0 and "rest_of_" or "", "rest", panel) end
    end
    return list, by_map
end

-- How rows go through the maps before and behind the blocks, by what these are of: { map, x, x_step; inputs,
-- inputs_step: what products take, x or what it is rounded to; rounded: whether it is; strip: where products convert
-- weights; products: as products_of has them }.
local function maps_of(p, products)
    local embedding, sums, dense, head = p.embedding, p.output.sums, p.output.dense, p.output.head
    local maps = {}
    local function add(name, map, x, x_step, rounded, strip)
        if not map then return end
        local one = { map = map, x = x, x_step = x_step, inputs = x, inputs_step = x_step, rounded = false }
        if p.rounded then
            one.inputs, one.inputs_step, one.rounded = rounded, layout.rounded_pitch(map.inputs, p.rounded), true
        end
        one.strip, one.products = strip, products[map]
        maps[name] = one
    end
    add("embedding", embedding.map, "embedded", embedding.width, "map_rounded", "map_weights")
    if sums then
        add("means", sums.map, sum("pooled", sums.hidden or 0), sums.pitch, "means_rounded", "means_weights")
    end
    add("dense", dense, "x", p.output.width, "rounded", "unpacked")
    local x, x_step = "x", p.output.width
    if dense then
        x, x_step = "features", dense.pitch
    end
    add("head", head, x, x_step, "rounded", "unpacked")
    return maps
end

-- The norms of rows before and behind the blocks: { of: what it is behind, given: what templates/math/norm.c takes,
-- weights: the arguments that are gains and offsets }; those that do the same are given the same.
local function norms_of(p)
    local list, known, taken, output = {}, {}, {}, p.output
    local function add(of, norm, width)
        local factors, eps = of == "factors", literal.float(norm.eps)
        local name = factors and "factors" or norm.kind .. "_" .. width
        local key, layernorm = name .. " " .. eps, norm.kind == "layernorm"
        if not known[key] then
            if taken[name] then name = name .. "_too" end
            taken[name] = true
            known[key] = { name = name, layernorm = layernorm, factors = factors, gains = true }
            known[key].width, known[key].eps = width, eps
        end
        local weights = "weights->" .. of .. "_norm"
        if layernorm then weights = weights .. ", " .. weights .. "_offset" end
        list[#list + 1] = { of = of, given = known[key], weights = weights }
    end
    local projected = p.embedding.projected
    if p.embedding.norm then add("embedding", p.embedding.norm, p.embedding.width) end
    if output.norm then add("output", output.norm, output.width) end
    if output.dense and output.dense.norm then add("dense", output.dense.norm, output.dense.outputs) end
    if projected and projected.norm then add("factors", projected.norm, p.embedding.width) end
    return list
end

-- What prints a vector of what a first map, `part` of the plan, makes of `row`, a vector of the embedding's: that from
-- place `at` on, `count` floats of it, nil: a whole one. by_units: whether rows are in units.
local function mapped_row(isa, by_units)
    return function(part, row, at, count)
        local function load(base)
            return count and isa.load_partial(base, at, count) or isa.load_unaligned(base, at)
        end
        local made, unit, place = row, part.name .. "_unit", part.positions and load(part.name .. "_places")
        if by_units then
            made = place and isa.fma(row, unit, place) or isa.mul(row, unit)
        elseif place then
            made = isa.add(row, place)
        end
        local bias = load("weights->bias_" .. part.name)
        return part.normed and isa.fma(made, "factor", bias) or isa.add(made, bias)
    end
end

-- Adds what reads the rows of the embedding.
local function add_rows(p, isa, values)
    local scalar, of = isa_list.get "scalar", p.embedding
    values.load_weights = not p.rows_type.groups and print_product.loader(isa, p.rows_type)
    values.rows_type, values.mapped_row = p.rows_type, mapped_row(isa, p.rows_type.scaled or of.scale ~= 1)
    values.load_some_weights = function(base, at, count)
        if p.rows_type.plain then return isa.load_partial(base, at, count) end
        return isa["load_partial_" .. p.rows_type.name](sum(base, at), count)
    end
    -- One element as a float, in C that all sets have.
    values.element = function(base, at)
        if p.rounded and p.rounded.integers then
            return "(float) ((int) " .. scalar.load(base, at) .. " - " .. p.rounded.offset .. ")"
        end
        if p.type.plain then return scalar.load(base, at) end
        return scalar["load_" .. p.type.name](sum(base, at))
    end
    values.load_scale = function(base, at) return scalar.load_f16(sum(base, at)) end
    values.groups = of.type.groups and print_product.groups(of.type, isa, of.panel) or false
end

-- Adds where rows lie in scratch, as lists of { type, name, place }: `first` of those that the pass works in before and
-- between runs of blocks, `last` of those behind them; and what functions that work in the latter are told of memory.
-- `alone` is the condition of a token alone. And the runs.
local function add_memory(p, v, values)
    local macro, buffers = p.names.macro, { first = {}, last = {} }
    local output = { parameters = "", arguments = "" }
    local function place(name)
        local many, step = p.memory.by_name[name], p.step_memory and p.step_memory.by_name[name]
        local at = macro(name:upper() .. "_AT")
        if step and step.at ~= many.at then
            at = "(alone ? " .. macro("STEP_" .. name:upper() .. "_AT") .. " : " .. at .. ")"
            return "memory + " .. at
        end
        return many.at == 0 and "memory" or "memory + " .. at
    end
    local function has(name)
        local converted = name:find "weights$" -- which not all instruction sets need
        return p.memory.by_name[name] ~= nil and (v.product.unpacks or not converted)
    end
    local function add(list, name)
        if not has(name) then return end
        local one = { type = name:find "rounded$" and "uint32_t *" or "float *", place = place(name) }
        one.name = name == "weights" and "unpacked" or name
        list[#list + 1] = one
        return one
    end
    for _, name in ipairs { "embedded", "factors", "mapped", "map_weights", "map_rounded" } do
        add(buffers.first, name)
    end
    for _, buffer in ipairs(p.memory.buffers) do
        if buffer.name:find "^x_" or buffer.name == "sums" then add(buffers.first, buffer.name) end
    end
    for _, name in ipairs { "pooled", "mapped_means", "means_weights", "means_rounded" } do
        add(buffers.last, name)
    end
    local alone = false
    for _, name in ipairs { "features", "rest", "weights", "rounded" } do
        local one = add(buffers.last, name)
        if one then
            output.parameters = output.parameters .. ", " .. one.type .. one.name
            output.arguments = output.arguments .. ", " .. one.name
            alone = alone or one.place:find("alone", 1, true) ~= nil
        end
    end
    local uses_memory = #buffers.last > 0
    values.has, values.buffers = has, buffers
    values.output_parameters, values.output_arguments = output.parameters, output.arguments
    values.memory_parameters = (uses_memory and ", unsigned char *memory" or "") .. (alone and ", int alone" or "")
    values.memory_arguments = function(memory)
        return (uses_memory and ", " .. memory or "") .. (alone and ", alone" or "")
    end
    values.depends = false
    for _, buffer in ipairs(p.step_memory and p.step_memory.buffers or {}) do
        values.depends = values.depends or buffer.at ~= p.memory.by_name[buffer.name].at
    end
    local from = "x_1"
    values.runs = {}
    for i, segment in ipairs(p.segments) do
        local run = { word = segment.word, from = from, to = segment.to, scratch = place(segment.word .. "_scratch") }
        run.name = segment.plan.variants[v.number].names.blocks
        run.cache = not p.causal and place(segment.word .. "_cache")
        values.runs[i], from = run, segment.to
    end
end

-- Adds to `values` what the kernel of the forward pass of plan `p` prints for variant `v`.
return function(p, v, values)
    local o = p.output
    add_rows(p, v.isa, values)
    values.tile = layout.keys
    local inputs, seen = {}, {}
    local of_means = o.sums and o.sums.map
    for _, map in ipairs { p.embedding.map or false, of_means or false, o.dense or false, o.head or false } do
        if p.rounded and map and not seen[map.inputs] then
            inputs[#inputs + 1], seen[map.inputs] = map.inputs, true
        end
    end
    print_run.rounding_values(v.isa, p.rounded, inputs, values)
    values.float_sums, values.threads = p.float_sums, p.threads
    values.sums_floats = p.float_sums and (o.pool == "mean" or o.pool == "sqrt_n" or o.unit) or false
    local products, by_map = products_of(p)
    values.products, values.norms, values.maps = products, norms_of(p), maps_of(p, by_map)
    values.plan, values.embedding, values.output = p, p.embedding, o
    values.float = literal.float
    add_memory(p, v, values)
    values.sums_tokens = p.segments[#p.segments].plan.variants[v.number].sums_tokens
end
