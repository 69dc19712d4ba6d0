-- What the templates of training print: copies of weights into their packed places, and the calls of a tile's backward.
local block_products = require "gen.families.lookup.print_block_products"
local buffers = require "gen.families.lookup.print_buffers"
local common = require "gen.families.lookup.print_common"
local literal = require "gen.print.literal"
local steps = require "gen.families.lookup.print_steps"
local training = require "gen.families.lookup.training"

local print_training = { add = training.add, header = "templates/lookup/training/train.h" }

local sum, times = literal.sum, literal.times

-- The loops that copy the elements of `box`, as gen/families/lookup/product.lua plans it, of a plain tensor to their
-- packed places.
local function copy_lines(box)
    local variables = { "repeat", "block", "panel", "fold", "row", "column" }
    local list, indent, from, to = {}, "", {}, {}
    for i, dim in ipairs(box.dims) do
        local variable = variables[i]
        if dim.count > 1 then
            list[#list + 1] =
                string.format("%sfor (size_t %s = 0; %s < %d; ++%s)", indent, variable, variable, dim.count, variable)
            indent = indent .. "    "
            if dim.from > 0 then from[#from + 1] = times(variable, dim.from) end
            if dim.to > 0 then to[#to + 1] = times(variable, dim.to) end
        end
    end
    if box.from > 0 or #from == 0 then from[#from + 1] = tostring(box.from) end
    if box.to > 0 or #to == 0 then to[#to + 1] = tostring(box.to) end
    list[#list + 1] = indent
        .. "prepared["
        .. table.concat(to, " + ")
        .. "] = folded["
        .. table.concat(from, " + ")
        .. "];"
    return list
end

local function copies_of(text, boxes)
    local lines = {}
    for _, box in ipairs(boxes) do
        table.move(copy_lines(box), 1, #copy_lines(box), #lines + 1, lines)
    end
    return { text = text, lines = lines }
end

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
        one_over_d_out = literal.float(1 / shape.d_out),
    }
    if shape.kind == "bh4" and not values.decay:find "[.e]" then values.decay = values.decay .. ".0" end
    return setmetatable(values, { __index = p.training })
end

function print_training.api(p) return { training = print_training.values(p), variants = p.variants } end

-- The factor of every score, false: none.
local function inverse_h(p) return p.model.scale == "1/h" and literal.float(1 / p.shape.h) or false end

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

-- Collects the lines of a tile's backward.
local function writer()
    local list, indent = {}, ""
    local self = { list = list }
    function self.add(text, ...) list[#list + 1] = indent .. string.format(text, ...) end
    function self.blank() list[#list + 1] = "" end
    function self.deeper(by) indent = by > 0 and indent .. "    " or indent:sub(5) end
    -- `body(name or number)` in a loop over `count` blocks, if there are several.
    function self.each(variable, count, body)
        if count == 1 then return body(nil) end
        self.add("for (size_t %s = 0; %s < %d; ++%s)", variable, variable, count, variable)
        self.deeper(1)
        body(variable)
        self.deeper(-1)
    end
    return self
end

-- `base + at + block * step`, without what is zero.
local function place(base, at, block, step)
    local text = sum(base, at)
    return block and step > 0 and text .. " + " .. times(block, step) or text
end

-- The stages of BH4 backward: for each repeat, its first three stages again, then all four from the last one.
local function bh4_lines(p, t, helper)
    local w, tile, shape = writer(), t.tile, p.shape
    local names = { x = "x_tile", a = "a", b = "b", z = "dz" }
    local inputs = { "x_tile", "a", "b", "c" }
    local tensor_repeat = 4 * shape.padded * shape.block
    for _, group in ipairs(t.back.groups) do
        if group.residual_rows > 0 then
            w.each(
                "repeat",
                group.count,
                function(variable)
                    w.add(
                        "%s_add_rows(dx_tile, %s, %s, %d);",
                        helper,
                        place("dz", group.first * shape.padded * tile, variable, shape.padded * tile),
                        literal.float(1 - shape.decay),
                        group.residual_rows
                    )
                end
            )
        end
    end
    -- The products of row `q` with `weights`, of blocks that lie `q.x_stride` rows apart from row x_row of `x` on, into
    -- those that lie y_stride apart from y_row of `y` on.
    local function multiply(q, weights, x, x_row, y, y_row, y_stride)
        w.each(
            "block",
            q.count,
            function(block)
                w.add(
                    "%s_%s(%s, 0, %s, %s, 0, 1);",
                    helper,
                    q.name,
                    place(x, x_row * tile, block, q.x_stride * tile),
                    place(weights, q.offset, block, q.block_words),
                    place(y, y_row * tile, block, y_stride * tile)
                )
            end
        )
    end
    for _, group in ipairs(t.back.groups) do
        w.blank()
        local several = group.count > 1
        local function of_repeat(base, at, step)
            if not several then return sum(base, at + group.first * 0) end
            return sum(base, at) .. " + " .. times("repeat", step)
        end
        if several then
            w.add("for (size_t repeat = 0; repeat < %d; ++repeat) {", group.count)
            w.deeper(1)
        else
            w.add("{")
            w.deeper(1)
        end
        w.add("const float *forward = %s;", of_repeat("weights", group.forward.at, group.forward.words))
        w.add("const float *backward = %s;", of_repeat("weights", group.at, group.words))
        w.add("float *gradient = %s;", of_repeat("sums", group.first * tensor_repeat, tensor_repeat))
        w.add("float *dy4 = %s;", of_repeat("dz", group.first * shape.padded * tile, shape.padded * tile))
        for number = 1, 3 do
            local stage = group.forward.stages[number]
            w.blank()
            w.add("/* stage %d again */", number)
            for _, q in ipairs(stage.products) do
                local x, y = q.first_block * q.x_stride, q.first_block * q.outputs
                multiply(q, "forward", inputs[number], x, inputs[number + 1], y, q.outputs)
            end
            for _, pass in ipairs(stage.passes) do
                w.add("%s_%s(%s);", helper, pass.name, inputs[number + 1])
            end
        end
        local from = "dy4"
        for number = 4, 1, -1 do
            local stage = group.stages[number]
            local to = number % 2 == 0 and "da" or "db"
            w.blank()
            w.add("/* stage %d backward */", number)
            for _, pass in ipairs(stage.passes) do
                w.add("%s_%s(%s);", helper, pass.name, from)
            end
            w.add("%s_turn(%s, %d, turned);", helper, inputs[number], stage.rows)
            for _, o in ipairs(stage.outer) do
                w.each(
                    "block",
                    o.count,
                    function(block)
                        w.add(
                            "%s_%s(%s, %s, %s);",
                            helper,
                            o.name,
                            place(from, o.y_row * tile, block, o.y_stride * tile),
                            place("turned", o.x_row, block, o.x_stride),
                            place("gradient", o.at, block, o.block)
                        )
                    end
                )
            end
            for _, q in ipairs(stage.products) do
                multiply(q, "backward", from, q.x_row, to, q.y_row, q.y_stride)
            end
            from = to
        end
        w.add("%s_add_rows(dx_tile, %s, 1.0f, %d);", helper, from, shape.d)
        w.deeper(-1)
        w.add("}")
    end
    return w.list, names
end

local function dense_lines(p, t, helper)
    local w, tile = writer(), t.tile
    w.add("%s_turn(x_tile, %d, turned);", helper, p.shape.d)
    w.add("%s_%s(dz, turned, sums);", helper, t.back.outer[1].name)
    for _, q in ipairs(t.back.products) do
        w.each(
            "block",
            q.count,
            function(block)
                w.add(
                    "%s_%s(dz, 0, %s, %s, 0, 1);",
                    helper,
                    q.name,
                    place("weights", q.offset, block, q.block_words),
                    place("dx_tile", q.y_row * tile, block, q.y_stride * tile)
                )
            end
        )
    end
    return w.list
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
    local t, files, shape = v.training, {}, p.shape
    local helper = p.names.helper() .. "_train"
    local training_values = print_training.values(p)
    local function add(path, symbol, kernels, more)
        local values = common(p, kernels, symbol)
        values.training, values.helper, values.t, values.inverse_h = training_values, helper, t, inverse_h(p)
        values.whole = v.tile
        for key, value in pairs(more) do
            values[key] = value
        end
        files[#files + 1] = { template = "templates/lookup/" .. path, symbol = symbol, values = values }
    end
    local tiles = setmetatable({ hash = v.hash, scratch = {}, x_step = shape.x_step }, { __index = t })

    add("training/prepare.c", t.names.prepare, tiles, {
        fold_columns = training_values.fold_columns,
        copies = {
            copies_of("panels for forward", p.variants[1].projection.boxes),
            copies_of("panels for backward, transposed", t.back.boxes),
        },
    })

    local list, arguments = { { name = "x", storage = "float" } }, "&weights, x_tiles"
    for _, buffer in ipairs(buffers.of_projection(v)) do
        if buffer.name ~= "z" then list[#list + 1] = buffer end
        arguments = arguments .. ", " .. (buffer.name == "z" and "z_here" or buffer.name)
    end
    add("training/forward.c", t.names.forward, v, { buffers = list, projection_arguments = arguments })

    add("training/rows.c", t.names.rows, tiles, { strip_kinds = strip_kinds(t) })

    add("many/load_tokens.c", t.names.load, tiles, {
        used = steps.used,
        transposes = steps.transposes(shape.d, t.isa.lanes),
        step = t.tile,
    })

    local products, outer, passes = kinds_of(shape, t)
    local values = {
        passes = passes,
        residual = false,
        in_tile = t.tile < v.tile,
        z_pitch = p.training.z,
        from = v.tile,
        to = t.tile,
        bias_strips = t.bias_strips,
        x_pitch = t.x_pitch,
        turn_helper = helper .. "_turn",
        used = steps.used,
        transposes = { t.isa.lanes },
        math_type = math.type,
    }
    block_products.many(p, tiles, products, values)
    add_outer(t, outer, values)
    for _, o in ipairs(outer) do
        o.name = string.format("outer_%dx%d", o.outputs, o.inputs)
    end
    values.stage_lines = shape.kind == "bh4" and bh4_lines(p, t, helper) or dense_lines(p, t, helper)
    training_values.x_pitch = t.x_pitch
    add("training/project.c", t.names.project, tiles, values)
    return files
end

return print_training
