-- What the templates of training print: sums of gradients in tiles, strips of rows, and their names.
local back = require "gen.families.lookup.print_back"
local block_products = require "gen.families.lookup.print_block_products"
local buffers = require "gen.families.lookup.print_buffers"
local common = require "gen.families.lookup.print_common"
local expression = require "gen.isa.expression"
local literal = require "gen.print.literal"
local steps = require "gen.families.lookup.print_steps"
local training = require "gen.families.lookup.training"

local sum, times = expression.sum, expression.times

local print_training = { add = training.add, header = "templates/lookup/training/train.h" }

-- What templates say of all instruction sets.
function print_training.values(p)
    local shape = p.shape
    local columns = shape.kind == "bh4" and math.min(shape.block, 16) or 0
    local values = {
        pitch = p.pitch,
        projection_text = shape.kind == "bh4" and string.format(
            "[%d][4][%d][%d outputs][%d inputs]",
            shape.repeats,
            shape.padded // shape.block,
            shape.block,
            shape.block
        ) or string.format("[%d outputs][%d inputs]", shape.bits, shape.d),
        fold_columns = columns,
        decay = shape.kind == "bh4" and string.format("%.17g", shape.decay) or "",
        decay_float = shape.kind == "bh4" and literal.float(shape.decay) or "",
        row_floats = (shape.d_out + 15) // 16 * 16,
        one_over_d_out = literal.inverse(shape.d_out),
    }
    if shape.kind == "bh4" and not values.decay:find "[.e]" then values.decay = values.decay .. ".0" end
    return setmetatable(values, { __index = p.training })
end

function print_training.api(p) return { training = print_training.values(p), variants = p.variants } end

-- The boxes of a projection's products in C, whose words begin behind `base`, number `at` of the prepared ones: from
-- and to where template prepare.c copies, of the first repeat, and the steps from repeat to repeat.
local function copies_of(p, projection, base, at)
    local list, shape, constant = {}, p.shape, p.names.constant
    -- Those of `products`: their words begin at number `words`, in C `to`, their part of the tensor at number `floats`,
    -- in C `from`.
    local function add(products, words, to, floats, from)
        for _, q in ipairs(products) do
            for _, box in ipairs(q.boxes) do
                local copy = { from = sum(from, box.from - floats), to = sum(to, box.to - words), dims = box.dims }
                if shape.kind == "bh4" and shape.repeats > 1 then
                    copy.repeated_from = times("repeat", "4 * " .. constant "TRAIN_W_FLOATS")
                    copy.repeated_to = times("repeat", constant "REPEAT_WORDS")
                end
                list[#list + 1] = copy
            end
        end
    end
    if shape.kind ~= "bh4" then
        add(projection.products, at, base, 0, 0)
        return list
    end
    for _, group in ipairs(projection.groups) do
        local first = group.first > 0 and times(group.first, constant "REPEAT_WORDS") or 0
        for number, stage in ipairs(group.stages) do
            local before, w = 4 * group.first + number - 1, number > 1 and constant("W" .. number .. "_AT") or 0
            local from = times(before, constant "TRAIN_W_FLOATS")
            add(stage.products, stage.products[1].at, sum(base, first, w), before * shape.padded * shape.block, from)
        end
    end
    return list
end

-- The factor of every score, false: none.
local function inverse_h(p) return p.model.scale == "1/h" and literal.inverse(p.shape.h) or false end

-- Tiles of `count` by at most `step`: { at, count, step }.
local function parts(count, step)
    local list, whole = {}, count // step
    if whole > 0 then list[1] = { at = 0, count = whole, step = step } end
    if count % step > 0 then list[#list + 1] = { at = whole * step, count = 1, step = count % step } end
    return list
end

-- Adds what sums of weights' gradients print: distinct blocks, and the tiles of outputs by inputs that they need.
local function add_outer(t, outer, values)
    local lanes, seen, tiles = t.isa.lanes, {}, {}
    values.outer_blocks, values.outer_tiles = {}, tiles
    for _, p in ipairs(outer) do
        local name = string.format("outer_%dx%d", p.outputs, p.inputs)
        p.name = name
        if not seen[name] then
            seen[name] = true
            local across = {}
            for _, part in ipairs(parts(p.inputs, t.outer.vectors * lanes)) do
                local vectors, partial = part.step // lanes, part.step % lanes
                part.name = tostring(part.step)
                across[#across + 1] = part
                for _, down in ipairs(parts(p.outputs, t.outer.outputs)) do
                    local tile_name = down.step .. "x" .. part.step
                    if not seen[tile_name] then
                        seen[tile_name] = true
                        tiles[#tiles + 1] = {
                            name = tile_name,
                            outputs = down.step,
                            vectors = vectors,
                            partial = partial,
                            floats = part.step,
                        }
                    end
                end
            end
            values.outer_blocks[#values.outer_blocks + 1] = {
                name = name,
                outputs = p.outputs,
                inputs = p.inputs,
                pitch = p.pitch,
                across = across,
                down = parts(p.outputs, t.outer.outputs),
            }
        end
    end
end

-- All block products of backward, sums of gradients, and butterflies, by name.
local function kinds_of(shape, t)
    if shape.kind ~= "bh4" then return t.back.products, t.back.outer, {} end
    local products, outer, passes, seen = {}, {}, {}, {}
    local function add_passes(list)
        for _, pass in ipairs(list) do
            if not seen[pass.name] then
                seen[pass.name] = true
                passes[#passes + 1] = pass
            end
        end
    end
    for _, group in ipairs(t.back.groups) do
        for number, stage in ipairs(group.stages) do
            if number < 4 then
                local forward = group.forward.stages[number]
                table.move(forward.products, 1, #forward.products, #products + 1, products)
                add_passes(forward.passes)
            end
            table.move(stage.products, 1, #stage.products, #products + 1, products)
            table.move(stage.outer, 1, #stage.outer, #outer + 1, outer)
            add_passes(stage.passes)
        end
    end
    return products, outer, passes
end

-- The distinct strips of a row, each named.
local function strip_kinds(t)
    local list = {}
    for _, strip in ipairs(t.strips) do
        strip.name = tostring(strip.vectors) .. (strip.partial > 0 and "_" .. strip.partial or "")
        local count = strip.vectors + (strip.partial > 0 and 1 or 0)
        list[#list + 1] = {
            name = strip.name,
            vectors = strip.vectors,
            partial = strip.partial,
            floats = strip.step,
            count = count,
            chains = math.min(4, count),
        }
    end
    return list
end

-- The kernel files of training for variant `v` of plan `p`: { {template, symbol, values} }.
function print_training.files(p, v)
    local t, files, shape, stage = v.training, {}, p.shape, v.stages[1]
    local helper = p.names.helper() .. "_train"
    local training_values = print_training.values(p)
    local function add(path, symbol, kernels, more)
        local values = common(p, kernels, symbol)
        values.training, values.helper, values.t, values.inverse_h = training_values, helper, t, inverse_h(p)
        values.code_tile = stage.tile
        for key, value in pairs(more) do
            values[key] = value
        end
        files[#files + 1] = { template = "templates/lookup/" .. path, symbol = symbol, values = values }
    end
    local tiles = setmetatable({ hash = stage.hash, scratch = {}, x_step = shape.x_step }, { __index = t })

    add("training/prepare.c", t.names.prepare, tiles, {
        fold_columns = training_values.fold_columns,
        copies = {
            { text = "panels for forward", boxes = copies_of(p, p.variants[1].stages[1].projection, 0, 0) },
            {
                text = "panels for backward, transposed",
                boxes = copies_of(p, t.back, p.names.constant "TRAIN_BACKWARD_AT", p.training.forward_floats),
            },
        },
    })

    local list, arguments = { { name = "x", storage = "float" } }, "&weights, x_tiles"
    for _, buffer in ipairs(buffers.of_projection(stage)) do
        if buffer.name ~= "z" then list[#list + 1] = buffer end
        arguments = arguments .. ", " .. (buffer.name == "z" and "z_here" or buffer.name)
    end
    add("training/forward.c", t.names.forward, stage, { buffers = list, projection_arguments = arguments })

    add("training/rows.c", t.names.rows, tiles, { strip_kinds = strip_kinds(t) })

    add("lanes/load_tokens.c", t.names.load, tiles, {
        used = steps.used,
        transposes = steps.transposes(shape.d, t.isa.lanes),
        step = t.tile,
    })

    local products, outer, passes = kinds_of(shape, t)
    local values = {
        passes = passes,
        residual = false,
        in_tile = t.tile < stage.tile,
        z_pitch = p.training.z,
        from = stage.tile,
        to = t.tile,
        bias_strips = t.bias_strips,
        x_pitch = t.x_pitch,
        turn_helper = helper .. "_turn",
        used = steps.used,
        residual_factor = shape.kind == "bh4" and literal.float(1 - shape.decay) or "",
    }
    block_products.lanes(p, tiles, products, values)
    add_outer(t, outer, values)
    for _, o in ipairs(outer) do
        o.name = string.format("outer_%dx%d", o.outputs, o.inputs)
    end
    local of_tile = common(p, tiles, t.names.project).of_tile
    values.back = back(t.back, shape, t.tile, p.names.constant, of_tile)
    training_values.x_pitch = t.x_pitch
    add("training/project.c", t.names.project, tiles, values)
    return files
end

return print_training
