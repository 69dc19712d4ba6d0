-- What the kernel templates print: from the plan's numbers to the names, lists and words that a template loops over.
local blob = require "gen.plan.blob"
local gather = require "gen.families.lookup.gather"
local literal = require "gen.print.literal"
local product = require "gen.families.lookup.product"

local kernels = {}

local sum = literal.sum

-- The first lines of a kernel file: includes, and a stop for a compiler without the right flags.
function kernels.prologue(p, isa)
    local lines = { '#include "' .. p.names.runtime .. '"' }
    if isa.guard then
        lines[#lines + 1] = ""
        lines[#lines + 1] = "#if !(" .. isa.guard .. ")"
        lines[#lines + 1] = '#error "compile this file with ' .. table.concat(isa.flags, " ") .. '"'
        lines[#lines + 1] = "#endif"
    end
    for i, header in ipairs(isa.includes) do
        if i == 1 then lines[#lines + 1] = "" end
        lines[#lines + 1] = "#include " .. header
    end
    return lines
end

-- Splits `outputs` outputs into codelets of at most `most`.
local function parts(outputs, most)
    local list, at = {}, 0
    while at < outputs do
        local n = math.min(most, outputs - at)
        list[#list + 1] = { at = at, outputs = n }
        at = at + n
    end
    return list
end

local function block_name(p)
    return "block_" .. p.rows .. "x" .. p.outputs .. (p.folds > 1 and "_folds" .. p.folds or "")
end

-- Names the products, and lists their distinct blocks, each with what `describe` adds to it.
local function distinct_blocks(products, describe)
    local seen, blocks = {}, {}
    for _, p in ipairs(products) do
        p.name = block_name(p)
        if not seen[p.name] then
            seen[p.name] = true
            local block = { name = p.name, rows = p.rows, outputs = p.outputs, folds = p.folds, fold_gap = p.fold_gap }
            describe(block, p)
            blocks[#blocks + 1] = block
        end
    end
    return blocks
end

-- What the block products of the few-token kernels print.
local function few_products(few, products, values)
    local isa, type = few.isa, values.projection
    local per_word, integers = type.word.rows, type.word.integers
    values.blocks = distinct_blocks(products, function(block, p)
        block.strips = { product.strips(p, isa.lanes, few.vectors_alone) } -- by the number of tokens
        block.strips[few.tokens] = product.strips(p, isa.lanes, few.vectors)
        block.lines, block.last_rows = p.rows // per_word, {}
        if integers then block.lines = p.depth // p.folds end
        for row = block.lines * per_word, p.rows - 1 do
            table.insert(block.last_rows, tostring(row))
        end
        block.block_words, block.x_stride = p.block_words, integers and p.x_stride // per_word or p.x_stride
    end)
    -- One call for all blocks of a product: a call for each costs one token 2 to 3 % of its projection.
    local counted = {}
    for _, p in ipairs(products) do
        counted[p.name] = counted[p.name] or p.count > 1
    end
    for _, block in ipairs(values.blocks) do
        block.counted = counted[block.name]
    end
    values.blocks_argument = function(p) return counted[p.name] and ", " .. p.count or "" end
    values.token_counts = few.tokens > 1 and { few.tokens, 1 } or { 1 }
    -- The variable that counts lines of words, and the rows of x that a line is for, each after `before`.
    values.line = per_word > 1 and "line" or "row"
    values.x_rows = function(before)
        local list = {}
        for part = 0, per_word - 1 do
            list[part + 1] = before .. sum(per_word > 1 and per_word .. " * line" or "row", part)
        end
        return list
    end
    -- A vector of line `line`: weights, or words of several and what they are.
    local function load(whole, partial, vector, line)
        local at = sum(math.type(line) and line * vector.step or line .. " * " .. vector.step, vector.at)
        return vector.partial and partial("w", at, vector.floats) or whole("w", at)
    end
    values.load_weights = function(vector, line) return load(isa.load_unaligned, isa.load_partial, vector, line) end
    values.load_words = function(vector, line) return load(isa.load_words, isa.load_words_partial, vector, line) end
    values.unpack = per_word > 1 and isa["unpack_" .. type.name] or false
    -- Declarations of a token's accumulators, four a line: of floats, or of integers with names that begin with `name`.
    values.zeros = function(token, count, name)
        local list, zero = {}, name and isa.index_zero() or isa.zero()
        for first = 0, count - 1, 4 do
            local line = {}
            for n = first, math.min(first + 3, count - 1) do
                line[#line + 1] = (name or "y") .. token .. "_" .. n .. " = " .. zero
            end
            list[#list + 1] = (name and isa.index or isa.vector) .. " " .. table.concat(line, ", ") .. ";"
        end
        return list
    end
    -- Sums of integers wait for each other where there are few: then two lines of words have sums of their own.
    values.chains = function(block, vectors, tokens)
        return vectors * tokens <= 4 and block.lines % 2 == 0 and block.lines > 0 and 2 or 1
    end
end

-- The functions that unpack words, one for each width of a panel in `blocks`: { {width, whole, partial} }, whole
-- vectors first.
local function unpacks_of(isa, blocks)
    local seen, list = {}, {}
    for _, block in ipairs(blocks) do
        for _, width in ipairs { block.full_panels > 0 and product.panel or 0, block.tail_outputs } do
            if width > 0 and not seen[width] then
                seen[width] = true
                list[#list + 1] = { width = width, whole = width - width % isa.lanes, partial = width % isa.lanes }
            end
        end
    end
    table.sort(list, function(a, b) return a.width < b.width end)
    return list
end

-- What the block products of the many-token kernels print: blocks, and the codelets they need.
local function many_products(v, products, values)
    local micro_seen = {}
    values.micro, values.folded = {}, false
    values.blocks = distinct_blocks(products, function(block, p)
        block.lines = p.depth // p.folds
        block.full_panels, block.tail_outputs, block.depth, block.panel_words =
            p.full_panels, p.tail_outputs, p.depth, p.depth * product.panel
        block.full = p.full_panels > 0 and parts(product.panel, v.outputs) or {}
        block.tail = parts(p.tail_outputs, v.outputs)
        values.folded = values.folded or p.folds > 1
        for _, list in ipairs { block.full, block.tail } do
            for _, part in ipairs(list) do
                if not micro_seen[part.outputs] then
                    micro_seen[part.outputs] = true
                    values.micro[#values.micro + 1] = part.outputs
                end
            end
        end
    end)
    table.sort(values.micro)
    values.panel, values.blocks_argument = product.panel, false
    -- The loop over the lines of words of a codelet, and weight `output` of the line that is `number` lines ahead.
    values.unroll = v.product_unroll
    values.counted = function(line)
        if v.product_unroll == 1 then return "++" .. line .. ", x += " .. v.tile .. ", w += width" end
        return string.format(
            "%s += %d, x += %d, w += %d * width",
            line,
            v.product_unroll,
            v.product_unroll * v.tile,
            v.product_unroll
        )
    end
    values.weight = function(number, output)
        local before = number == 0 and "" or number == 1 and "width" or number .. " * width"
        return "w[" .. (number == 0 and output or sum(before, output)) .. "]"
    end
    local word = values.projection.word
    values.unpacked = word.rows > 1 and not word.integers
    if values.unpacked then values.unpacks = unpacks_of(v.isa, values.blocks) end
    values.accumulators = function(output)
        local list = {}
        for n = 0, v.vectors - 1 do
            list[n + 1] = "y" .. output .. "_" .. n .. " = " .. (word.integers and v.isa.index_zero() or v.isa.zero())
        end
        return table.concat(list, ", ")
    end
end

-- What a stage does, in words.
function kernels.describe_stage(stage)
    local list = {}
    for _, p in ipairs(stage.products) do
        local rows = p.folds > 1 and p.folds .. "*" .. p.rows or p.rows
        list[#list + 1] = (p.count > 1 and p.count .. " blocks" or "a block")
            .. " of "
            .. rows
            .. " inputs and "
            .. p.outputs
            .. " outputs"
    end
    local text = table.concat(list, " and ")
    if #stage.passes > 0 then text = text .. ", then a Hadamard transform over the blocks" end
    return text
end

-- Names the passes of butterflies and appends those to `list` whose names are not in `seen`.
function kernels.name_passes(passes, list, seen)
    for _, pass in ipairs(passes) do
        local all = pass.radix * pass.stride
        pass.name = "butterfly_"
            .. pass.radix
            .. "x"
            .. pass.stride
            .. (pass.groups > 1 and "x" .. pass.groups or "")
            .. (pass.live < all and "_live" .. pass.live or "")
            .. (pass.need < all and "_need" .. pass.need or "")
            .. (
                pass.measures and "_units"
                or pass.residual and (pass.residual.rows > 0 and "_residual" .. pass.residual.rows or "_bias")
                or ""
            )
        if not seen[pass.name] then
            seen[pass.name] = true
            list[#list + 1] = pass
            for n, segment in ipairs(pass.segments) do
                segment.suffix = n > 1 and n or ""
            end
        end
    end
end

-- Pass `pass` that does more with its outputs than store them.
local function pass_with(pass, more) return setmetatable(more, { __index = pass }) end

-- Whether a pass can add the residual to the first `rows` rows: all of a wire's rows have one, or none.
local function takes_residual(pass, rows)
    for _, segment in ipairs(pass.segments) do
        for wire = 0, segment.need - 1 do
            local first = wire * pass.stride
            if first + segment.from < rows and first + segment.to > rows then return false end
        end
    end
    return pass.groups == 1 or rows == 0 or rows >= pass.groups * pass.radix * pass.stride
end

-- Steps of the stages of `group`: their passes. With many tokens the last one of a stage, which has the outputs in
-- registers, finds the units for the rounding of the next stage, or adds residual and bias.
local function finish_stages(p, v, group, residual)
    local integers = p.projection.word.integers
    group.finished = false
    for number, stage in ipairs(group.stages) do
        stage.steps = table.move(stage.passes, 1, #stage.passes, 1, {})
        stage.measured = false
        local last = stage.passes[#stage.passes]
        if v.regime == "many" and last then
            if number == 4 and takes_residual(last, residual and group.residual_rows or 0) then
                group.finished = true
                stage.steps[#stage.steps] =
                    pass_with(last, { residual = { rows = residual and group.residual_rows or 0, gain = residual } })
            elseif
                number < 4
                and integers
                and v.isa.lanes > 1
                and last.radix + 2 * v.vectors + 2 <= v.isa.registers
            then
                stage.steps[#stage.steps] = pass_with(last, { measures = true })
            end
        end
        if number > 1 then
            local before = group.stages[number - 1].steps
            stage.measured = #before > 0 and before[#before].measures or false
        end
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

local function bh4_values(p, v, values)
    local residual = p.residual and (p.model.norm and "vector" or literal.float(1 - p.shape.decay)) or false
    local apart = false -- whether the units of a stage's outputs are found by themselves
    local products, passes, seen = {}, {}, {}
    local groups = v.projection.groups
    for i, group in ipairs(groups) do
        group.target = sum("z", group.first * p.shape.padded * v.tile)
        if group.count > 1 then group.target = "y" end
        group.after = i < #groups and group.words or 0
        group.residual_rows = math.min(p.shape.d, group.need)
        finish_stages(p, v, group, residual)
        values.biased = values.biased or not group.finished and (not p.residual or group.need > p.shape.d)
        values.residual_apart = values.residual_apart or not group.finished and residual
        for _, stage in ipairs(group.stages) do
            stage.text = kernels.describe_stage(stage)
            for _, item in ipairs(stage.products) do
                item.offset = item.at - group.at
                products[#products + 1] = item
            end
            kernels.name_passes(stage.steps, passes, seen)
            if stage.number > 1 and not stage.measured then apart = true end
        end
    end
    values.name_products(v, products, values)
    local whole = p.shape.d == p.shape.padded and { p.shape.padded } or { p.shape.d, p.shape.padded }
    values.measured_rows = apart and whole or { p.shape.d }
    values.rounded_rows = v.regime == "few" and whole or rows_of(products)
    values.passes, values.groups = passes, groups
    -- What the pass of a group takes beside its rows.
    values.pass_arguments = function(pass, group)
        if pass.measures then return ", " .. values.units_at(1) end
        if not pass.residual then return "" end
        local x = pass.residual.rows > 0 and ", x + tile * " .. values.x_step * v.tile or ""
        return x
            .. (residual == "vector" and pass.residual.rows > 0 and ", weights->residual" or "")
            .. ", "
            .. sum("weights->projection_bias", group.first * p.shape.padded)
            .. (group.count > 1 and " + repeat * " .. p.shape.padded or "")
    end
    values.buffer_rows, values.z_rows = v.projection.rows, v.projection.rows.z
    values.blocks_total = p.shape.padded // p.shape.block
    values.residual, values.residual_apart = residual, values.residual_apart or false
    values.biased = values.biased or false
end

-- The steps { name, value } that the first `count` results depend on, in their order.
local function used(steps, results, count)
    local needed, list = {}, {}
    for i = 1, count do
        for word in results[i]:gmatch("[%a_][%w_]*") do
            needed[word] = true
        end
    end
    for i = #steps, 1, -1 do
        if needed[steps[i].name] then
            table.insert(list, 1, steps[i])
            for word in steps[i].value:gmatch("[%a_][%w_]*") do
                needed[word] = true
            end
        end
    end
    return list
end

-- The sizes of the transposes that `columns` columns take: as many as lanes, and the last ones.
local function transposes_of(columns, lanes)
    local list = {}
    if columns >= lanes then list[1] = lanes end
    if columns % lanes > 0 then list[#list + 1] = columns % lanes end
    return list
end

-- What a comment calls so many floats of a token.
function kernels.rows(width, step)
    return "[" .. width .. "]" .. (step > width and ", " .. step .. " floats apart" or "")
end

-- What the projection of `v` works in and writes, beside x: { {name, storage} }.
local function projection_buffers(v)
    local list = {}
    for _, name in ipairs { "a", "b", "z" } do
        if v.projection.rows[name] then list[#list + 1] = { name = name, storage = "float" } end
    end
    return table.move(v.work, 1, #v.work, #list + 1, list)
end

-- They as parameters of the projection's function.
function kernels.projection_parameters(v)
    local list = projection_buffers(v)
    for i, buffer in ipairs(list) do
        list[i] = buffer.storage .. " *restrict " .. buffer.name
    end
    return table.concat(list, ", ")
end

-- What all kernel templates of one regime read: `v` is a variant or its `few`.
local function kernel_values(p, v, symbol)
    local m, few = p.model, v.regime == "few"
    local values = {
        isa = v.isa,
        v = v,
        values_type = "float",
        hash = v.hash,
        projection = p.projection,
        symbol = symbol,
        used = used,
        lanes = v.isa.lanes,
        tile = v.tile,
        vectors = v.vectors,
        prologue = kernels.prologue(p, v.isa),
        score = m.score,
        norm = m.norm ~= nil,
        gain_text = m.norm and ", LayerNorm's gain" or "",
        x_text = m.norm and ", normalised" or "",
        eps = m.norm and literal.float(m.norm.eps) or "",
        one_over_d = literal.float(1 / p.shape.d),
        vertices_argument = v.hash.bytes > 0 and ", vertices" or "",
        vertices_parameter = v.hash.bytes > 0 and ", void *restrict vertices" or "",
        table_of = function(slot) return p.shape.neighbours > 1 and slot .. " / " .. p.shape.neighbours or slot end,
        openmp = p.openmp,
        makes_codes = p.makes_codes,
        x_step = few and m.norm == nil and p.shape.x_step or p.shape.d, -- of a projection's input
        projection_rows = few and m.norm == nil and kernels.rows(p.shape.d, p.shape.x_step) or "[" .. p.shape.d .. "]",
        x_rows = kernels.rows(p.shape.d, p.shape.x_step),
        y_rows = kernels.rows(p.shape.d_out, p.shape.y_step),
        slots_text = "[" .. p.shape.h .. "]" .. (p.shape.neighbours > 1 and "[" .. p.shape.neighbours .. "]" or ""),
    }
    values.helper = p.names.helper(few)
    -- Whether the hash asks for rows of which it has just found the codes.
    values.asks = v.early and p.makes_codes or false
    values.ask_parameter, values.ask_argument =
        values.asks and ", const " .. p.names.weights .. " *ask" or "",
        values.asks and ", token == 0 ? ask : NULL" or ""
    values.line_elements = blob.align // p.tables.bytes
    values.projection_parameters = kernels.projection_parameters(v)
    values.unpacked = false
    -- Statements, four a line, that keep variables of the names in their registers.
    values.keep = function(list)
        local text = {}
        for i = 1, v.isa.register_barrier and #list or 0, 4 do
            local line = {}
            for n = i, math.min(i + 3, #list) do
                line[#line + 1] = p.names.macro("KEEP") .. "(" .. list[n] .. ");"
            end
            text[#text + 1] = table.concat(line, " ")
        end
        return text
    end
    local integers = p.projection.word.integers
    -- Calls that find the units of a tile's inputs, and that round them; `place` 0 is that of the units of x, 1 of
    -- those of a stage's outputs. Few tokens find and round at once. A block of `fold`s has inputs so many floats
    -- apart.
    values.units_at = function(place) return sum("units + tile * " .. 4 * v.tile, place * 2 * v.tile) end
    values.measure = integers
        and not few
        and function(source, step, rows, place)
            return values.helper
                .. "_units_"
                .. rows
                .. "("
                .. source
                .. " + tile * "
                .. step
                .. ", "
                .. values.units_at(place)
                .. ")"
        end
    values.round = function(source, step, rows, place, fold)
        local from, to = source .. " + tile * " .. step, "integers + tile * " .. values.integers.pitch
        if few then
            return "units[tile] = " .. values.helper .. "_round_" .. rows .. "(" .. from .. ", " .. to .. ")"
        end
        if fold then
            from, to = from .. " + fold * " .. fold, to .. " + fold * " .. rows // p.projection.word.rows * v.tile
        end
        return values.helper .. "_round_" .. rows .. "(" .. from .. ", " .. values.units_at(place) .. ", " .. to .. ")"
    end
    values.integers = integers and { pitch = v.work[1].pitch * v.tile } or false
    if few then
        values.parts = {
            product = integers and "templates/lookup/few/pair_product.c" or "templates/lookup/few/product.c",
            round = "templates/lookup/few/round_inputs.c",
            bias = "templates/lookup/few/bias.c",
            residual = "templates/lookup/few/residual.c",
        }
        values.name_products = few_products
        values.up_to, values.lane_axis = "a few tokens, each a tile of its own", ""
        values.x_alignment = m.norm and "" or " but x, which may have any alignment"
    else
        values.parts = {
            product = integers and "templates/lookup/many/pair_product.c" or "templates/lookup/many/product.c",
            round = "templates/lookup/many/round_inputs.c",
            bias = "templates/lookup/many/bias.c",
            residual = "templates/lookup/many/residual.c",
        }
        values.name_products = many_products
        values.up_to, values.lane_axis =
            string.format("up to %d tiles of %d tokens", v.tiles, v.tile), "[" .. v.tile .. "]"
        values.x_alignment = ""
    end
    return values
end

-- What sums of integers print: functions for lines of columns of one load, strips of lines, groups of tables, and tiles
-- of columns. `tables`: of a call.
local function dot_values(p, v, values, tables)
    local isa, dot, many = v.isa, v.isa.gather_i8, v.tile > 1
    values.sums_of_integers = many
    if many then
        values.quads_partial = p.shape.h % dot.rows > 0
        values.dot_quads, values.dot_low = blob.round_up(p.shape.h, dot.rows) // dot.rows, v.tile
        values.dot_pitch = function(columns) return gather.dot_pitch(dot, columns) end
    else
        -- Words of one token's scores of a call, which are made a vector of tables at a time.
        values.quads_partial = tables % dot.rows > 0 or p.shape.h % tables % dot.rows > 0
        values.dot_low = blob.round_up(tables, isa.lanes) // dot.rows
    end
    -- Rows lie `pitch` apart: a parameter where they may be copied, but a constant of each call that is inlined.
    -- Multiplying by one in a register and adding where its table begins takes 4096 tokens of roberta_small 1.02 times
    -- as long.
    values.dot_pitch_parameter, values.dot_pitch_argument =
        v.pack and "size_t pitch, " or "", v.pack and "pitch, " or ""
    values.dot_rows = function(table, rows) -- `table`, so many rows further on
        if math.type(rows) and not v.pack then return sum(table, rows * p.pitch) end
        return rows == 0 and table or table .. " + " .. rows .. " * " .. (v.pack and "pitch" or p.pitch)
    end
    values.commas = function(list) return table.concat(list, ", ") end

    -- Distinct lines, `columns` of a load, and the vectors of floats that those become: { columns, suffix, vectors = {
    -- {at, floats} } }.
    local parts, seen_parts = {}, {}
    local function part_of(columns)
        if not seen_parts[columns] then
            local part =
                { columns = columns, suffix = columns < dot.columns and "_first" .. columns or "", vectors = {} }
            for at = 0, columns - 1, isa.lanes do
                part.vectors[#part.vectors + 1] = { at = at, floats = math.min(isa.lanes, columns - at) }
            end
            seen_parts[columns], parts[#parts + 1] = part, part
        end
        return seen_parts[columns]
    end
    -- Distinct strips: { width, lines = { {at, suffix} }, followed }, followed if one asks for the rows of the next.
    local strips, seen_strips = {}, {}
    local function add_strip(width, followed)
        if width == 0 then return end
        local strip = seen_strips[width]
        if not strip then
            strip = { width = width, lines = {}, followed = false }
            for at = 0, width - 1, dot.columns do
                strip.lines[#strip.lines + 1] = { at = at, suffix = part_of(math.min(dot.columns, width - at)).suffix }
            end
            seen_strips[width], strips[#strips + 1] = strip, strip
        end
        strip.followed = strip.followed or followed
    end
    for _, tile in ipairs(v.gather) do
        local s = tile.strips
        if s.count > 0 then add_strip(s.floats, v.prefetch and s.count > 1) end
        add_strip(s.rest, false)
    end
    values.dot_parts, values.dot_strips, values.dot_strip = parts, strips, function(width) return seen_strips[width] end
    values.dot_groups, values.dot_waits = {}, false
    if not many then return end

    -- Distinct calls: { tables, last }, last if with them the tables of a span end.
    local runs, seen_runs = {}, {}
    values.dot_name = function(run, t)
        return values.helper .. (run.last and "_end_" or "_sum_") .. run.tables .. "x" .. t.width
    end
    local function add_run(run)
        local key = (run.last and "end" or "sum") .. run.tables
        if not seen_runs[key] then
            seen_runs[key], runs[#runs + 1] = true, run
        end
    end
    for _, span in ipairs(v.spans) do
        if span.tables > v.group then add_run(span.group) end
        add_run(span.last)
    end
    values.dot_runs = runs
    -- Distinct groups of more tables than are added at a time, `together` of them in a step of a loop: { tables,
    -- together, strip }.
    local seen_groups = {}
    for _, run in ipairs(runs) do
        values.dot_waits = values.dot_waits or not run.last
        if run.tables > dot.rows and not seen_groups[run.tables] then
            seen_groups[run.tables] = true
            for _, strip in ipairs(strips) do
                values.dot_groups[#values.dot_groups + 1] = {
                    tables = run.tables,
                    together = math.min(v.unroll, blob.round_up(run.tables, dot.rows)),
                    strip = strip,
                }
            end
        end
    end
    values.dot_zeros = 0
    for _, tile in ipairs(v.gather) do
        values.dot_zeros = math.max(values.dot_zeros, values.dot_pitch(tile.width))
    end
end

-- Rows of floats are loaded in place; of other types, by one small function for whole vectors and one for each partial
-- vector that there is.
local function gather_values(p, v, values)
    local word, isa = p.tables.name, v.isa
    local m = p.shape.neighbours
    local sizes = { math.min(v.group, p.shape.h) * m, p.shape.h % v.group * m } -- of a call, in rows that a token takes
    local function all_multiples(n) return sizes[1] % n == 0 and sizes[2] % n == 0 end
    values.pitch = p.pitch
    values.loads, values.ask, values.dot = {}, v.ask or false, v.dot or false
    values.sums_of_integers = false
    values.together, values.rest_rows = {}, v.unroll > 1 and not all_multiples(v.unroll)
    for r = 0, v.unroll - 1 do
        values.together[r + 1] = r
    end
    local function factor(k) return k:find(" ") and "(" .. k .. ")" or k end
    values.count = m == 1 and "tables" or "tables * " .. m
    values.slot = function(k) return v.tile == 1 and k or factor(k) .. " * " .. v.tile end
    values.pack, values.row_pitch = v.pack or false, v.pack and (v.dot and "pitch" or "row_step") or p.pitch
    values.row_of = function(k)
        return "table + ("
            .. values.table_of(factor(k))
            .. " * "
            .. p.shape.rows
            .. " + token_code["
            .. values.slot(k)
            .. "]) * "
            .. values.row_pitch
    end
    if v.dot then return dot_values(p, v, values, sizes[1]) end
    if word == "f32" then
        values.load_row, values.load_row_partial = isa.load_unaligned, isa.load_partial
        return
    end
    local seen = {}
    local function add(n)
        local name = values.helper .. "_load_" .. word .. (n < isa.lanes and "_first" .. n or "")
        if not seen[name] then
            seen[name] = true
            values.loads[#values.loads + 1] = {
                name = name,
                n = n,
                value = n < isa.lanes and isa["load_partial_" .. word]("row", n) or isa["load_" .. word]("row"),
            }
        end
        return name
    end
    for _, tile in ipairs(v.gather) do
        local s = tile.strips
        if s.count > 0 or s.vectors_left > 0 then add(isa.lanes) end
        if s.partial > 0 then add(s.partial) end
    end
    values.load_row = function(row, offset) return add(isa.lanes) .. "(" .. sum(row, offset) .. ")" end
    values.load_row_partial = function(row, offset, n) return add(n) .. "(" .. sum(row, offset) .. ")" end
end

-- The files of the stages that make codes and scores.
local function code_files(p, v, add, templates)
    if templates.load then
        add(templates.load, v.names.load, v, function(values)
            values.transposes, values.step = transposes_of(p.shape.d, v.isa.lanes), v.tile
        end)
    end
    if p.shape.kind == "bh4" then
        add("templates/lookup/shared/bh4.c", v.names.projection, v, function(values) bh4_values(p, v, values) end)
    else
        add("templates/lookup/shared/dense.c", v.names.projection, v, function(values)
            values.products, values.rounded_rows = v.projection.products, { p.shape.d }
            values.measured_rows = values.rounded_rows
            values.name_products(v, values.products, values)
        end)
    end
    add(templates.hash, v.names.hash, v, function(values)
        values.pitch = p.pitch
        values.transposes, values.step =
            transposes_of(p.shape.tau, v.isa.lanes), v.regime == "few" and v.isa.lanes or v.tile
        values.panel_floats = p.shape.tau * v.isa.lanes
        values.aligned_floats = not v.isa.any_alignment and values.panel_floats + blob.align // 4
        values.each_table = p.shape.neighbours > 1 and "table * " .. p.shape.neighbours or "table"
        values.rows_text = p.shape.neighbours == p.shape.rows and "all rows of each table, in order"
            or "the "
                .. p.shape.neighbours
                .. " best rows of each table: bit j of the first is z > 0, the first bit the most significant"
    end)
end

-- The files of one regime of an instruction set, but its driver.
local function regime_files(p, v, add, templates)
    if p.makes_codes then code_files(p, v, add, templates) end
    add("templates/lookup/shared/gather.c", v.names.gather, v, function(values) gather_values(p, v, values) end)
end

-- What z is, in words.
function kernels.formula(p)
    local words = { p.model.norm and "z projects LayerNorm(x)" or "z projects x" }
    words[#words + 1] = p.shape.kind == "bh4" and "by BH4, blocks of " .. p.shape.block or "by one dense matrix"
    return table.concat(words, " ") .. "."
end

-- Whether kernels have functions that work on their caller's registers: sums of integers, and what butterflies do
-- beside storing.
function kernels.inlines(p)
    for _, v in ipairs(p.variants) do
        if v.dot or v.regime == "many" and v.isa.lanes > 1 and p.shape.kind == "bh4" and p.makes_codes then
            return true
        end
    end
    return false
end

-- The templates of the model's own files, and what they read beside the plan.
function kernels.api(p)
    local integers = false
    for _, section in ipairs(p.sections) do
        integers = integers or section.storage ~= "float"
    end
    return {
        header = p.target and "templates/firmware/model.h" or "templates/lookup/model.h",
        source = p.target and "templates/firmware/model.c" or "templates/lookup/model.c",
        layer_text = "templates/lookup/layer.h",
        shape_text = "templates/lookup/shape.h",
        ffn_text = "templates/lookup/ffn.h",
        input = "float",
        output = "float",
        prototypes = "templates/lookup/prototypes.h",
        projection_parameters = kernels.projection_parameters,
        openmp = p.openmp,
        makes_codes = p.makes_codes,
        keeps = p.variants[#p.variants].isa.register_barrier and (p.tables.scaled or p.projection.word.rows > 1)
            or false,
        inlines = kernels.inlines(p),
        integers = integers,
        most_threads = p.most_threads,
        norm = p.model.norm ~= nil,
        formula = kernels.formula(p),
        statuses = {},
        rows_text = p.shape.neighbours == p.shape.rows and "all " .. p.shape.rows .. " rows"
            or "the " .. p.shape.neighbours .. " best rows",
        alias_text = p.shape.d == p.shape.d_out and "may be x itself, otherwise no overlap" or "must not overlap x",
    }
end

-- The kernel files of variant `v` of plan `p`: { {template, symbol, values} }.
function kernels.files(p, v)
    local files = {}
    local function add(path, symbol, regime, extend)
        local values = kernel_values(p, regime, symbol)
        if extend then extend(values) end
        files[#files + 1] = { template = path, symbol = symbol, values = values }
    end
    local function buffers(values, x)
        values.buffers = { { name = "x", storage = "float" } }
        values.projection_arguments = "weights, " .. x
        for _, buffer in ipairs(projection_buffers(values.v)) do
            values.buffers[#values.buffers + 1] = buffer
            values.projection_arguments = values.projection_arguments .. ", " .. buffer.name
        end
    end
    local few = v.regime == "few" and v or v.few
    if v.regime == "many" then
        regime_files(
            p,
            v,
            add,
            { load = "templates/lookup/many/load_tokens.c", hash = "templates/lookup/many/sign_hash.c" }
        )
        add("templates/lookup/many/ffn.c", v.names.ffn, v, function(values)
            buffers(values, "x_tiles")
            values.few, values.scratch_bytes = v.few or false, p.scratch_bytes
        end)
    end
    if few then
        regime_files(
            p,
            few,
            add,
            { load = p.model.norm and "templates/lookup/few/normalise.c", hash = "templates/lookup/few/sign_hash.c" }
        )
        add("templates/lookup/few/ffn.c", few.names.ffn, few, function(values)
            values.few = few
            buffers(values, p.model.norm and "normalised" or "x")
            if not p.model.norm then table.remove(values.buffers, 1) end
        end)
    end
    return files
end

return kernels
