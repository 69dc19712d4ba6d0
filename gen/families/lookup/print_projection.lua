-- What the templates of projections print: block products, butterflies, and the rounding of inputs to integers.
local block_products = require "gen.families.lookup.print_block_products"
local buffers = require "gen.families.lookup.print_buffers"
local literal = require "gen.print.literal"

local sum = literal.sum

-- The templates of the parts of a projection.
local function parts_of(regime, integers)
    local folder = "templates/lookup/" .. regime .. "/"
    return {
        product = folder .. (integers and "pair_product.c" or "product.c"),
        round = folder .. "round_inputs.c",
        bias = folder .. "bias.c",
        residual = folder .. "residual.c",
    }
end

-- Adds the calls that find the units of a tile's inputs, and that round them; `place` 0 is that of the units of x, 1 of
-- those of a stage's outputs. Few tokens find and round at once. A block of `fold`s has inputs so many floats apart.
local function add_rounding(p, v, values)
    local few, word = v.regime == "few", p.projection.word
    local at_item = few and " + token * " or " + tile * "
    values.integers = { pitch = v.work[1].pitch * v.tile }
    local function units_at(place) return sum("units + tile * " .. 4 * v.tile, place * 2 * v.tile) end
    values.units_at = units_at
    values.measure = not few
        and function(source, step, rows, place)
            return string.format("%s_units_%d(%s + tile * %d, %s)", values.helper, rows, source, step, units_at(place))
        end
    values.round = function(source, step, rows, place, fold)
        local name = values.helper .. "_round_" .. rows
        local from, to = source .. at_item .. step, "integers" .. at_item .. values.integers.pitch
        if few then return "units[token] = " .. name .. "(" .. from .. ", " .. to .. ")" end
        if fold then
            from, to = from .. " + fold * " .. fold, to .. " + fold * " .. rows // word.rows * v.tile
        end
        return name .. "(" .. from .. ", " .. units_at(place) .. ", " .. to .. ")"
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
    local shape, projection, products = p.shape, v.projection, {}
    for _, group in ipairs(projection.groups) do
        for _, stage in ipairs(group.stages) do
            table.move(stage.products, 1, #stage.products, #products + 1, products)
        end
    end
    local whole = shape.d == shape.padded and { shape.padded } or { shape.d, shape.padded }
    values.measured_rows = projection.apart and whole or { shape.d }
    values.rounded_rows = v.regime == "few" and whole or rows_of(products)
    values.passes, values.groups = projection.passes, projection.groups
    -- The factor of the share of the input that bypasses the projection.
    values.residual = p.residual and (p.model.norm and "vector" or literal.float(1 - shape.decay)) or false
    values.adds_residual, values.adds_bias = projection.adds_residual, projection.adds_bias
    -- What the pass of a group takes beside its rows.
    values.pass_arguments = function(pass, group)
        if pass.measures then return ", " .. values.units_at(1) end
        if not pass.residual_rows then return "" end
        local x = pass.residual_rows > 0
                and ", x + " .. (v.regime == "few" and "token" or "tile") .. " * " .. v.x_step * v.tile
            or ""
        return x
            .. (values.residual == "vector" and x ~= "" and ", weights->residual" or "")
            .. ", "
            .. sum("weights->projection_bias", group.row0)
            .. (group.count > 1 and " + repeat * " .. shape.padded or "")
    end
    values.z_rows, values.blocks_total = projection.rows.z, shape.padded // shape.block
    return products
end

-- Adds to `values` what the template of the projection of `v` reads beside what kernels have in common.
return function(p, v, values)
    local few, norm, shape, integers = v.regime == "few", p.model.norm, p.shape, p.projection.word.integers
    values.parts = parts_of(v.regime, integers)
    values.projection_parameters = buffers.projection_parameters(v)
    values.projection_rows = buffers.rows(shape.d, v.x_step)
    values.gain_text, values.x_text = norm and ", LayerNorm's gain" or "", norm and ", normalised" or ""
    values.x_alignment = few and not norm and " but x, which may have any alignment" or ""
    values.up_to = few and "a few tokens"
        or string.format(v.tiles == 1 and "%d tile of %d tokens" or "up to %d tiles of %d tokens", v.tiles, v.tile)
    values.integers, values.measure, values.round = false, false, false
    if integers then add_rounding(p, v, values) end
    local products
    if shape.kind == "bh4" then
        products = add_bh4(p, v, values)
    else
        products = v.projection.products
        values.products, values.rounded_rows, values.measured_rows = products, { shape.d }, { shape.d }
    end
    if p.projection.word.integers then
        values.rounded = {
            vectors = 2,
            storage = p.projection.word.storage,
            limit = "32767",
            text = "16-bit integers, two to a word",
        }
    end
    block_products[v.regime](p, v, products, values)
end
