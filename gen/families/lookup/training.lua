-- Plans the training kernels of a LookupFFN: forward through the kernels of inference on weights that are folded and
-- packed once a step, and backward through the same folded weights.
local blob = require "gen.plan.blob"
local butterfly = require "gen.families.lookup.butterfly"
local misuse = require "gen.schema.misuse"
local names = require "gen.schema.names"
local product = require "gen.families.lookup.product"
local sections = require "gen.families.lookup.sections"
local validated = require "gen.schema.validated"
local words = require "gen.isa.words"

local training = {}

local line = 16 -- floats of a cache line

local function lines_of(floats) return blob.round_up(floats, line) end

-- The product of the blocks of `p` transposed: from gradients of the outputs of fold number `fold` to those of its
-- inputs.
local function transposed(p, fold, at, repeats)
    local from = p.source
    local back = product.plan(
        { count = p.count, rows = p.outputs, outputs = p.rows, folds = 1, x_stride = p.outputs },
        at,
        1,
        { at = from.at + fold * from.fold, block = from.block, fold = 0, row = from.output, output = from.row },
        repeats
    )
    -- the rows of its inputs and outputs
    back.x_row, back.y_row = p.first_block * p.outputs, p.first_block * p.x_stride + fold * p.fold_gap
    back.y_stride = p.x_stride
    return back
end

-- Adds to the plan `back` of a BH4 projection's backward the stages of each group of repeats, from word `at` on: for
-- each stage `products`, which take gradients from its outputs to its inputs, `outer`, which sum the gradients of its
-- weights, and `passes`, which take gradients back through the butterflies.
local function add_bh4(back, shape, projection, radix, at)
    local b, N = shape.block, shape.padded
    local tensor_repeat = 4 * N * b
    for _, group in ipairs(projection.groups) do
        local function stages_at(start, repeats)
            local list, count = {}, 0
            for _, stage in ipairs(group.stages) do
                local reverse = { products = {}, outer = {} }
                for _, p in ipairs(stage.products) do
                    for fold = 0, p.folds - 1 do
                        local q = transposed(p, fold, start + count, repeats)
                        q.offset = count
                        count = count + q.words
                        reverse.products[#reverse.products + 1] = q
                        reverse.outer[#reverse.outer + 1] = {
                            count = p.count,
                            inputs = p.rows,
                            outputs = p.outputs,
                            pitch = b,
                            -- relative to the tensor of the first repeat of the group
                            at = q.source.at - group.first * tensor_repeat,
                            block = q.source.block,
                            x_row = q.y_row,
                            x_stride = p.x_stride,
                            y_row = q.x_row,
                            y_stride = p.outputs,
                        }
                    end
                end
                list[#list + 1] = reverse
            end
            return list, count
        end
        local _, count = stages_at(0)
        local list = stages_at(at, { count = group.count, words = count, source = tensor_repeat })
        for number, stage in ipairs(group.stages) do
            -- The blocks of a stage's outputs and the rows that butterflies know to be zero or leave unread: backward
            -- the two change places.
            local out_blocks = (stage.outputs + b - 1) // b
            local live, need = N, N
            if number == 1 then live = (shape.d + b - 1) // b * b end
            if number == 4 and group.need < N then need = out_blocks == 1 and b or group.need end
            list[number].passes = butterfly.passes(out_blocks, b, radix, need, live)
            list[number].source, list[number].target = stage.source, stage.target
            list[number].forward = stage
            list[number].rows = number == 1 and shape.d or N
        end
        back.groups[#back.groups + 1] = {
            first = group.first,
            count = group.count,
            need = group.need,
            at = at,
            words = count,
            stages = list,
            forward = group,
            residual_rows = shape.decay < 1 and math.min(shape.d, group.need) or 0,
        }
        at = at + group.count * count
        for _, stage in ipairs(list) do
            for _, q in ipairs(stage.products) do
                table.move(q.boxes, 1, #q.boxes, #back.boxes + 1, back.boxes)
            end
        end
    end
    return at
end

-- Likewise of a dense projection: one product with blocks of a panel of inputs each.
local function add_dense(back, shape, at)
    local function add(count, outputs, first)
        if count == 0 or outputs == 0 then return end
        local q = product.plan(
            { count = count, rows = shape.bits, outputs = outputs, folds = 1, x_stride = 0 },
            at,
            1,
            { at = first, block = outputs, fold = 0, row = shape.d, output = 1 }
        )
        q.offset, q.x_row, q.y_row, q.y_stride = at, 0, first, outputs
        at = at + q.words
        back.products[#back.products + 1] = q
        table.move(q.boxes, 1, #q.boxes, #back.boxes + 1, back.boxes)
    end
    local panels = shape.d // product.panel
    add(panels, product.panel, 0)
    add(1, shape.d % product.panel, panels * product.panel)
    back.outer[1] = {
        count = 1,
        inputs = shape.d,
        outputs = shape.bits,
        pitch = shape.d,
        at = 0,
        block = 0,
        x_row = 0,
        x_stride = 0,
        y_row = 0,
        y_stride = 0,
    }
    return at
end

-- The strips of a row of `width` floats: { at, count, vectors, partial (floats of a last vector), step }: `count`
-- strips of `step` floats from column `at` on.
local function strips_of(width, lanes, vectors)
    local list, whole = {}, width // lanes
    local count, left, partial = whole // vectors, whole % vectors, width % lanes
    if count > 0 then list[1] = { at = 0, count = count, vectors = vectors, partial = 0, step = vectors * lanes } end
    if left > 0 or partial > 0 then
        list[#list + 1] = {
            at = count * vectors * lanes,
            count = 1,
            vectors = left,
            partial = partial,
            step = left * lanes + partial,
        }
    end
    return list
end

-- How gradients of weights are summed: tiles of outputs by vectors of inputs that fit the registers.
local function outer_of(isa)
    if isa.lanes == 1 then return { outputs = 4, vectors = 4 } end
    return isa.registers >= 32 and { outputs = 8, vectors = 2 } or { outputs = 4, vectors = 2 }
end

-- Tokens of a tile of the backward kernels: their activations of a repeat beside its weights in L2.
local function vectors_of(v, floats_of_token)
    local vectors = v.vectors
    while vectors % 2 == 0 and vectors * v.isa.lanes * floats_of_token * 4 > v.isa.l2_bytes do
        vectors = vectors // 2
    end
    return vectors
end

-- Buffers of the backward of a tile, in floats of a token.
local function buffers_of(shape, projection, lanes)
    local x_pitch = blob.round_up(shape.padded, lanes)
    local list = { { name = "x", rows = shape.d }, { name = "dz", rows = projection.rows.z } }
    if shape.kind == "bh4" then
        for _, name in ipairs { "a", "b", "c", "da", "db" } do
            list[#list + 1] = { name = name, rows = shape.padded }
        end
    end
    list[#list + 1] = { name = "dx", rows = shape.d }
    list[#list + 1] = { name = "turned", rows = x_pitch }
    return list, x_pitch
end

local function names_of(m, isa)
    local function name(kernel) return names.variant(m.name, "train_" .. kernel, isa.name) end
    return {
        prepare = name "prepare",
        forward = name "forward",
        rows = name "rows",
        list_rows = name "list_rows",
        apply_rows = name "apply_rows",
        project = name "project",
        finish = name "finish",
        load = name "load",
    }
end

-- The training kernels of variant `v` of plan `p`, as p.training has them.
local function variant_of(p, v)
    local stage = v.stages[1]
    local shape, isa, projection = p.shape, v.isa, stage.projection
    words.demand(isa, { "few", "many", "masks", "training" }, p.model.name .. " in training")
    local buffers, x_pitch = buffers_of(shape, projection, isa.lanes)
    local floats = 0
    for _, buffer in ipairs(buffers) do
        floats = floats + buffer.rows
    end
    local vectors = vectors_of(stage, floats)
    local tile = vectors * isa.lanes
    local at, list = 0, {}
    for _, buffer in ipairs(buffers) do
        list[#list + 1] = { name = buffer.name, rows = buffer.rows, floats = lines_of(buffer.rows * tile) }
        at = at + lines_of(buffer.rows * tile)
    end
    local t = {
        layout = "lanes",
        isa = isa,
        tile = tile,
        vectors = vectors,
        outputs = stage.outputs,
        code_tile = stage.tile, -- tokens of a tile of codes, scores and z
        buffers = list,
        buffer_floats = at,
        x_pitch = x_pitch,
        outer = outer_of(isa),
        strips = strips_of(shape.d_out, isa.lanes, isa.registers >= 32 and 16 or isa.lanes == 1 and 4 or 8),
        bias_strips = strips_of(shape.d_out, isa.lanes, 8),
        names = names_of(p.model, isa),
        groups = {},
        products = {},
        outer_products = {},
    }
    local back = { groups = {}, products = {}, outer = {}, boxes = {} }
    local start = p.training.forward_floats
    local finish
    if shape.kind == "bh4" then
        finish = add_bh4(back, shape, projection, v.schedule["butterfly.radix"], start)
    else
        finish = add_dense(back, shape, start)
    end
    t.back = back
    assert(not p.training.prepared or p.training.prepared == finish)
    p.training.prepared = finish
    -- Scratch: buffers of backward, or those of inference's kernels, or the plain folded weights and a block in
    -- float64, or the bucketed tokens of a table.
    local fold = p.training.projection_floats * 4 + line * shape.block * 8
    local sorted = (shape.rows + 1) * 4
    t.scratch_bytes =
        blob.round_up(math.max(at * 4, v.scratch_bytes, fold, sorted + lines_of(shape.d_out) * 4 + 64), blob.align)
    return t
end

-- The tensors of one LookupFFN in a checkpoint, and where training has them: `field` of the struct of parameters;
-- pitch: floats from row to row in memory; deviation: of random values to start from; folded: of a tensor that the
-- packer rounds to a type of its own, what it does before: { steps, row (elements with one scale) }, of a row of
-- tables.
local function tensors_of(p)
    local shape, list = p.shape, {}
    local kinds = {
        ["hash.projection.weight"] = {
            kind = "projection",
            field = "projection",
            folded = { steps = sections.projection_steps(p.model, shape), row = sections.projection_row(shape) },
        },
        ["hash.projection.bias"] = { kind = "bias", field = "projection_bias", deviation = 0 },
        bias = { kind = "bias", field = "bias", deviation = 0 },
        tables = {
            kind = "tables",
            field = "tables",
            folded = { steps = sections.table_steps(p.model, shape, 1), row = shape.d_out },
        },
    }
    for i, tensor in ipairs(sections.tensors(p.model, shape)) do
        local known, columns = kinds[tensor.name], tensor.shape[#tensor.shape]
        local elements = 1
        for _, count in ipairs(tensor.shape) do
            elements = elements * count
        end
        list[i] = {
            name = tensor.name,
            field = known.field,
            kind = known.kind,
            folded = known.folded,
            shape = tensor.shape,
            rows = elements // columns,
            columns = columns,
            pitch = known.kind == "tables" and p.pitch or columns,
            mean = tensor.mean,
            deviation = known.deviation or tensor.deviation,
        }
    end
    return list
end

-- Raises one line unless there are training kernels for plan `p`.
local function check(p)
    local m = p.model
    if m.norm then validated.refuse(m, { "norm" }, nil, "a LookupFFN is trained without a norm of its own") end
    if not p.shape.score.scored then
        validated.refuse(m, { "score" }, m.score, "cannot be trained: it gives z no gradient")
    end
    if p.exact then misuse "--arithmetic: integer: must be float with --training" end
    if p.tables.name ~= "f32" then misuse("--tables: " .. p.tables.name .. ": must be f32 with --training") end
    if p.projection.name ~= "f32" then
        misuse("--projection: " .. p.projection.name .. ": must be f32 with --training")
    end
end

-- Adds to plan `p` the constants that only training uses.
local function add_constants(p)
    local shape, sums = p.shape, p.training.sums
    local function add(name, value, doc)
        local title = "Floats of arrays of training."
        table.insert(p.constants, { name = p.names.prefix .. name, value = value, doc = doc, title = title })
    end
    add("TRAIN_BACKWARD_AT", p.training.forward_floats, "before the packed weights for backward: those for forward")
    if shape.kind == "bh4" then
        add("TRAIN_W_FLOATS", shape.padded * shape.block, "of each of the four stages of a repeat in the checkpoint")
    end
    add("TRAIN_SUMS_PROJECTION_BIAS_AT", sums.projection_bias, "before the gradient of the projection's bias, in sums")
    add("TRAIN_SUMS_BIAS_AT", sums.bias, "and before that of the bias")
end

-- Adds to plan `p` of a LookupFFN, or of one in a whole model, p.training and v.training of its variants.
--   forward_floats, prepared   floats of the packed weights for forward, and for both directions
--   projection_floats          of the projection's tensor
--   sums                       of one thread's gradients: { projection_bias, bias } from these offsets on, behind
--                              those of the projection, `floats` in all
--   tile                       tokens: ranges of tokens start on multiples of it
--   z                          floats of a token's z
function training.add(p)
    check(p)
    local shape = p.shape
    local elements = 1
    for _, count in ipairs(sections.projection_shape(shape)) do
        elements = elements * count
    end
    local bias_at = lines_of(elements)
    local out_at = bias_at + lines_of(shape.bits)
    p.training = {
        forward_floats = lines_of(p.variants[1].stages[1].projection.words),
        projection_floats = elements,
        sums = { projection_bias = bias_at, bias = out_at, floats = out_at + lines_of(shape.d_out) },
        z = p.variants[1].stages[1].projection.rows.z,
        tile = 1,
        slots = shape.slots,
        tensors = tensors_of(p),
        scratch_bytes = 0,
        names = {
            parameters = p.model.name .. "_train_parameters",
            rates = p.model.name .. "_train_rates",
            tokens = p.model.name .. "_train_tokens",
        },
    }
    add_constants(p)
    for _, v in ipairs(p.variants) do
        v.training = variant_of(p, v)
        local a, b = p.training.tile, v.stages[1].tile
        while b > 0 do
            a, b = b, a % b
        end
        p.training.tile = p.training.tile // a * v.stages[1].tile
        p.training.scratch_bytes = math.max(p.training.scratch_bytes, v.training.scratch_bytes)
    end
end

return training
