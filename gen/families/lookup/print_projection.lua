-- What the templates of projections print: block products, butterflies, and the rounding of inputs to integers.
local block_products = require "gen.families.lookup.print_block_products"
local buffers = require "gen.families.lookup.print_buffers"
local byte_products = require "gen.isa.parts.byte_products"
local expression = require "gen.isa.expression"
local literal = require "gen.print.literal"
local product = require "gen.families.lookup.product"

local sum = expression.sum

-- The templates of the parts of a projection.
local function parts_of(layout, integers)
    local folder = "templates/lookup/" .. layout .. "/"
    return {
        product = folder .. (integers and layout == "lanes" and "integer_product.c" or "product.c"),
        round = folder .. "round_inputs.c",
    }
end

local counters = { nil, "k_pair", nil, "k_quad" } -- of words, by the inputs in one
local words_text = {
    nil,
    "A word holds two weights, or two inputs.",
    nil,
    "A word holds four weights, or four inputs.",
}

-- Adds the calls that find the units of a tile's inputs, and that round them; `place` 0 is that of the units of x, 1 of
-- those of a stage's outputs. Few tokens find and round at once, and so does what has a unit for each block. A block of
-- `fold`s has inputs so many floats apart.
local function add_rounding(p, v, values)
    local few, word, of_tile = v.layout == "rows", p.projection.word, values.of_tile
    local at_item = few and " + token * " or " + tile * "
    local blocks, block = v.work[2].blocks, v.shape.kind == "bh4" and v.shape.block or v.shape.d
    values.integers = {
        pitch = v.work[1].pitch * v.tile,
        starts = word.offset ~= nil,
        offsets = word.offset and string.format("0x%08xu", word.offset * 0x01010101), -- in every byte
        blocks = word.offset and blocks or false, -- units of a token
        block = block,
        lines = product.lines(block, word.rows), -- of a block
        units_pitch = 2 * blocks * v.tile,
    }
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
    local function units_at(place) return sum("units + tile * " .. of_tile(2 * blocks * v.tile), place * 2 * v.tile) end
    values.units_at = units_at
    values.measure = not few
        and not word.offset
        and function(source, step, rows, place)
            local from = source .. " + tile * " .. of_tile(step)
            return string.format("%s_units_%d(%s, %s)", values.helper, rows, from, units_at(place))
        end
    -- What `round` does not find by itself where maxima may be known: the units of a block.
    values.find_units = function(source, step, rows, fold)
        local from, to = source .. at_item .. of_tile(step), units_at(0)
        if fold then
            from, to = from .. " + fold * " .. of_tile(fold), to .. " + fold * " .. of_tile(2 * v.tile)
        end
        return values.helper .. "_units_" .. rows .. "(" .. from .. ", " .. to .. ")"
    end
    values.round = function(source, step, rows, place, fold)
        local name = values.helper .. "_round_" .. rows
        local from, to = source .. at_item .. of_tile(step), "integers" .. at_item .. of_tile(values.integers.pitch)
        local units, starts = units_at(word.offset and 0 or place or 0), "starts + tile * " .. of_tile(blocks * v.tile)
        if few and word.offset then
            units, starts = "units + token * " .. blocks, "starts + token * " .. blocks
        elseif few then
            return "units[token] = " .. name .. "(" .. from .. ", " .. to .. ")"
        end
        if fold then
            from = from .. " + fold * " .. of_tile(fold)
            to = to .. " + fold * " .. of_tile(product.lines(rows, word.rows) * v.tile)
            -- With an offset each block has a unit, otherwise all of a token have one.
            units = word.offset and units .. " + fold * " .. of_tile(2 * v.tile) or units
            starts = starts .. " + fold * " .. v.tile
        end
        return name .. "(" .. table.concat({ from, units, word.offset and to .. ", " .. starts or to }, ", ") .. ")"
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
    -- What the pass of a group takes beside its rows.
    values.pass_arguments = function(pass, group)
        if pass.measures then return ", " .. values.units_at(1) end
        local row = pass.panel and ", row" or ""
        if pass.maxima then return row .. ", maxima + tile * " .. values.of_tile(values.integers.blocks * v.tile) end
        if not pass.residual_rows then return row end
        local x = pass.residual_rows > 0
                and ", x + " .. (v.layout == "rows" and "token" or "tile") .. " * " .. values.of_tile(v.x_step * v.tile)
            or ""
        return row
            .. x
            .. (values.residual == "vector" and x ~= "" and ", weights->residual" or "")
            .. ", "
            .. sum("weights->projection_bias", group.row0)
            .. (group.count > 1 and " + repeat * " .. shape.padded or "")
    end
    values.z_rows, values.blocks_total = projection.rows.z, shape.padded // shape.block
    return products
end

-- Adds to `values` what the template of the projection of stage `v` reads beside what kernels have in common.
return function(p, v, values)
    local few, norm, shape, integers = v.layout == "rows", p.model.norm, v.shape, p.projection.word.integers
    local projection = v.projection
    values.parts = parts_of(v.layout, integers)
    values.projection_parameters = buffers.projection_parameters(v)
    values.projection_rows = buffers.rows(shape.d, v.x_step)
    values.gain_text, values.x_text = norm and ", LayerNorm's gain" or "", norm and ", normalised" or ""
    values.x_alignment = few and not norm and " but x, which may have any alignment" or ""
    values.up_to = few and "a few tokens"
        or string.format(v.tiles == 1 and "%d tile of %d tokens" or "up to %d tiles of %d tokens", v.tiles, v.tile)
    values.integers_text = false
    values.integers, values.measure, values.round, values.find_units = false, false, false, false
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
        values.multiplied, values.z_rows = shape.of ~= nil, projection.rows.z
        values.weights_of = shape.of and "dense_projection" or "projection"
        values.rounded_rows, values.measured_rows = values.block_rows, values.block_rows
    end
    values.bypassed = {} -- groups of repeats whose outputs get residual and bias behind all butterflies
    for _, group in ipairs(values.groups) do
        if not group.finished then table.insert(values.bypassed, group) end
    end
    if v.layout == "rows" and p.projection.word.offset then add_round_runs(p, v, values) end
    block_products[v.layout](p, v, products, values)
    -- Whether a block is multiplied as a whole, of integers, which takes their factors.
    values.factored = integers and not values.tiled and (v.layout == "rows" or #values.called_blocks > 0) or false
end
