-- What the templates of projections print: block products, butterflies, and the rounding of inputs to integers.
local block_products = require "gen.families.lookup.print_block_products"
local buffers = require "gen.families.lookup.print_buffers"
local byte_products = require "gen.isa.parts.byte_products"
local expression = require "gen.isa.expression"
local figures = require "gen.plan.figures"
local literal = require "gen.print.literal"
local product = require "gen.families.lookup.product"

local sum = expression.sum

-- The templates of the parts of a projection.
local function parts_of(layout, integers)
    local folder = "templates/lookup/" .. layout .. "/"
    return {
        product = folder .. (integers and layout == "lanes" and "integer_product.c" or "product.c"),
        round = folder .. "round_inputs.c",
        stage = folder .. (integers and "bh4_integer_stage.c" or "bh4_stage.c"),
        dense = folder .. "dense.c",
        rows_first = folder .. "bh4_rows_first_stage.c",
    }
end

-- What the comment and the parameters of a projection say; `item` is what it works on, one after the other.
local function contract_of(p, v)
    local few, norm, shape, rows = v.layout == "rows", p.model.norm, v.shape, v.projection.rows
    local item, axis = few and "token" or "tile", few and "" or "[" .. v.tile .. "]"
    local more = rows.z > shape.bits and ", the first " .. figures.plural(shape.bits, "row") .. ": the result" or ""
    return {
        item = item,
        axis = axis,
        x = "[" .. item .. "s]" .. buffers.rows(shape.d, v.x_step) .. axis .. (norm and ", normalised" or ""),
        z = "[" .. item .. "s][" .. rows.z .. "]" .. axis .. more,
        scratch_names = rows.b and "a, b" or "a   ",
        gain = norm and ", LayerNorm's gain" or "",
        but_x = few and not norm and " but x, which may have any alignment" or "",
        up_to = few and "a few tokens"
            or string.format(v.tiles == 1 and "%d tile of %d tokens" or "up to %d tiles of %d tokens", v.tiles, v.tile),
        parameters = buffers.projection_parameters(v),
        weights_type = p.projection.word.storage,
    }
end

local counters = { nil, "k_pair", nil, "k_quad" } -- of words, by the inputs in one
local words_text = {
    nil,
    "A word holds two weights, or two inputs.",
    nil,
    "A word holds four weights, or four inputs.",
}

-- Adds what inputs are rounded to: words, their units and starts, and what products do with them. Tokens in the lanes
-- have units of x and of a stage's outputs, or of each fold; tokens in rows one each, or one of each block.
local function add_rounding(p, v, values)
    local few, word = v.layout == "rows", p.projection.word
    local blocks, block = v.work[2].blocks, v.shape.kind == "bh4" and v.shape.block or v.shape.d
    values.integers = {
        pitch = v.work[1].pitch * v.tile,
        starts = word.offset ~= nil,
        offsets = word.offset and string.format("0x%08xu", word.offset * 0x01010101), -- in every byte
        blocks = word.offset and blocks or false, -- units of a token
        block = block,
        lines = product.lines(block, word.rows), -- of a block
        lines_of = function(rows) return product.lines(rows, word.rows) end,
        units_pitch = 2 * blocks * v.tile,
    }
    values.measures = not few and not word.offset
    values.counter, values.integers_text = counters[word.rows], words_text[word.rows]
    local products = byte_products(v.isa, word.levels)
    values.dot, values.dot_two = word.rows == 2 and v.isa.dot_i16 or products.dot, products.dot_two or false
    values.dot_inputs = products.dot_narrow -- times 1 or the weights' offset
    -- Inputs rounded to the integers of words: vectors of them for a vector of words, or in a row.
    values.pack_word = function(parts)
        return (word.rows == 4 and v.isa.pack_i8 or v.isa.pack_i16)(table.unpack(parts))
    end
    values.store_inputs = function(base, at, parts)
        return (word.rows == 4 and v.isa.store_quads or v.isa.store_i16)(base, at, table.unpack(parts))
    end
end

-- Adds what says which blocks of a token are rounded side by side: round_runs(rows) gives, of the whole blocks among
-- `rows` inputs, { first, count, together }; together_counts has the distinct ones over 1, of `rounded_rows`, and
-- rounded_alone the numbers of inputs of blocks that are rounded by themselves.
local function add_round_runs(p, v, values)
    local isa, word, block = v.isa, p.projection.word, values.integers.block
    local whole_vectors = block % (word.rows * isa.lanes) == 0
    local sizes = isa.largest_of and whole_vectors and { 8, 4, 1 } or { 1 }
    values.round_runs = function(rows)
        local runs, first, left = {}, 0, rows // block
        for _, size in ipairs(sizes) do
            local count = left - left % size
            if count > 0 then runs[#runs + 1] = { first = first, count = count, together = size } end
            first, left = first + count, left - count
        end
        return runs
    end
    local seen, alone = {}, {}
    values.together_counts, values.rounded_alone = {}, {}
    for _, rows in ipairs(values.rounded_rows) do
        for _, run in ipairs(values.round_runs(rows)) do
            local size = run.together
            if size > 1 and not seen[size] then table.insert(values.together_counts, size) end
            seen[size] = true
        end
        alone[rows % block] = true
    end
    alone[block] = seen[1]
    for _, rows in ipairs(values.block_rows) do
        if alone[rows] then table.insert(values.rounded_alone, rows) end
    end
end

-- The numbers of inputs that blocks of `products` have.
local function rows_of(products)
    local seen, list = {}, {}
    for _, p in ipairs(products) do
        if not seen[p.rows] then list[#list + 1] = p.rows end
        seen[p.rows] = true
    end
    return list
end

-- Of each product before which tokens in rows point at other units and starts than those of the product before in its
-- repeat: where these begin. Blocks have units of their own where weights have an offset.
local function other_units(groups, offset)
    local found = {}
    for _, group in ipairs(groups) do
        local at
        for _, stage in ipairs(group.stages) do
            for _, product_of in ipairs(stage.products) do
                local place = offset and product_of.first_block or 0
                if place ~= at then found[product_of] = place end
                at = place
            end
        end
    end
    return found
end

-- What a step of `group` takes beside its rows, tokens in the lanes.
local function step_arguments(pass, group, v, values)
    local of_tile, list = values.of_tile, {}
    local function add(argument) list[#list + 1] = argument end
    if pass.panel then add "row" end
    if pass.measures then add(sum("units + tile * " .. of_tile(values.integers.units_pitch), 2 * v.tile)) end
    if pass.maxima then add("maxima + tile * " .. of_tile(values.integers.blocks * v.tile)) end
    if pass.residual_rows then
        local from_x = pass.residual_rows > 0
        if from_x then add("x + tile * " .. of_tile(v.x_step * v.tile)) end
        if from_x and values.residual == "vector" then add "weights->residual" end
        local repeated = group.count > 1 and " + repeat * " .. v.shape.padded or ""
        add(sum("weights->projection_bias", group.row0) .. repeated)
    end
    return list
end

local function add_bh4(p, v, values)
    local shape, projection, products = v.shape, v.projection, {}
    for _, group in ipairs(projection.groups) do
        for _, stage in ipairs(group.stages) do
            table.move(stage.products, 1, #stage.products, #products + 1, products)
        end
    end
    local whole = shape.d == shape.padded and { shape.padded } or { shape.d, shape.padded }
    values.rounded_rows = v.layout == "rows" and whole or rows_of(products)
    values.block_rows = rows_of(products)
    values.measured_rows = p.projection.word.offset and values.rounded_rows or projection.apart and whole or { shape.d }
    if v.rows_first then
        -- Of x, and where the stage before has not found maxima.
        local measured = {}
        values.measured_rows, values.whole_blocks = {}, {}
        for _, group in ipairs(projection.groups) do
            for _, stage in ipairs(group.stages) do
                for _, product_of in ipairs(stage.products) do
                    if not stage.rows_first then values.whole_blocks[product_of.name] = true end
                    if not (stage.rows_first and stage.maxima) and not measured[product_of.rows] then
                        measured[product_of.rows] = true
                        table.insert(values.measured_rows, product_of.rows)
                    end
                end
            end
        end
    end
    values.passes, values.groups = projection.passes, projection.groups
    local constant = p.names.constant
    -- Where the words of a product begin among those of a repeat.
    values.words_at = function(product_of, stage)
        if product_of.offset == 0 then return 0 end
        return constant("W" .. stage.number .. (product_of ~= stage.products[1] and "_REST_AT" or "_AT"))
    end
    if v.layout == "rows" then
        values.other_units = other_units(projection.groups, p.projection.word.offset)
    else
        values.step_arguments = {} -- by step: what it takes beside its rows
        for _, group in ipairs(projection.groups) do
            for _, stage in ipairs(group.stages) do
                for _, pass in ipairs(stage.steps) do
                    values.step_arguments[pass] = step_arguments(pass, group, v, values)
                end
            end
        end
    end
    values.blocks_total = shape.padded // shape.block
    return products
end

-- Adds to `values` what the template of the projection of stage `v` reads beside what kernels have in common.
return function(p, v, values)
    local norm, shape, integers = p.model.norm, v.shape, p.projection.word.integers
    local projection = v.projection
    values.parts, values.contract = parts_of(v.layout, integers), contract_of(p, v)
    values.z_rows = projection.rows.z
    values.integers_text = false
    values.integers, values.measures, values.structs = false, false, {}
    values.counter = false
    values.rows_first = v.rows_first or false
    -- The factor of the share of the input that bypasses the projection.
    values.residual = p.residual and (norm and "vector" or literal.float(1 - shape.decay)) or false
    values.adds_residual, values.adds_bias = projection.adds_residual, projection.adds_bias
    values.round_runs, values.together_counts, values.rounded_alone = false, {}, false
    if integers then add_rounding(p, v, values) end
    local products
    if shape.kind == "bh4" then
        products = add_bh4(p, v, values)
    else
        products = projection.products
        values.products, values.block_rows, values.groups = products, { shape.d }, projection.groups
        values.tiled = projection.tiled or false
        values.multiplied = shape.of ~= nil
        values.weights_of = shape.of and "dense_projection" or "projection"
        values.rounded_rows, values.measured_rows = values.block_rows, values.block_rows
    end
    values.bypassed = {} -- groups of repeats whose outputs get residual and bias behind all butterflies
    values.added_rows = { residual = {}, bias = {} } -- of a token that calls of these functions take
    for _, group in ipairs(values.groups) do
        if not group.finished then
            table.insert(values.bypassed, group)
            table.insert(values.added_rows.residual, group.residual_rows)
            table.insert(values.added_rows.bias, group.need - group.residual_rows)
        end
    end
    if shape.kind ~= "bh4" and not values.adds_residual then values.added_rows.bias = { shape.bits } end
    if v.layout == "rows" and p.projection.word.offset then add_round_runs(p, v, values) end
    block_products[v.layout](p, v, products, values)
    -- A block that is multiplied as a whole, of integers, takes its factors in one.
    values.factored = integers and not values.tiled and (v.layout == "rows" or #values.called_blocks > 0) or false
    if values.factored then table.insert(values.structs, "factors") end
    if v.rows_first and values.folded then table.insert(values.structs, "folds") end
end
