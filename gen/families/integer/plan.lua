-- From a validated LookupFFN to the plan of its integer kernels: every size, offset, format and constant of arithmetic
-- without floating point.
--
-- What weights decide (units of rows and stages) the packer chooses and writes into the blob as integers: multipliers,
-- and shifts that are constant for all tokens. Everything else is a number here.
--   x       int16 in units of input / 2^15; with a norm, normalised to int16 with normalise.fraction binary places
--   stages  sums of int16 times weights in int32, times the multiplier of their output / 2^16, rounded down;
--           butterflies in int32; then a rounding shift back to int16
--   z       int32; bits are exact signs of it. Sizes |z| have size.fraction binary places, at most 16 bits
--   score   2^-(sum of log2(1 + exp(-2 |z|))) by two tables with linear interpolation, times the multiplier of the row
--           of the table
--   y       int32 sums of scores times int8 rows; a rounding shift to `fraction` binary places
-- No intermediate value can overflow: the packer bounds all of them for every possible x.
local bh4 = require "gen.families.lookup.bh4"
local blob = require "gen.plan.blob"
local cost = require "gen.plan.cost"
local host = require "host"
local json = require "json"
local names = require "gen.model.names"
local plan = require "gen.families.lookup.plan"
local product = require "gen.families.lookup.product"
local validated = require "gen.model.validated"
local lookup_sections = require "gen.families.lookup.sections"

local integer_plan = {}

integer_plan.most_d = 2048 -- so that d^2 sums stay in 32 bits

-- The types that the projection's weights may have; fields as in gen/plan/dtype.lua, `most`: the largest |weight|.
local projection_types = {
    { name = "i8", bytes = 1, storage = "int8_t", scaled = false, word = { storage = "int8_t", rows = 1 }, most = 127 },
    {
        name = "i16",
        bytes = 2,
        storage = "int16_t",
        scaled = false,
        word = { storage = "int16_t", rows = 1 },
        most = 32767,
    },
}
integer_plan.projection_names = { "i8", "i16" }
local tables_type = { name = "i8", bytes = 1, storage = "int8_t", scaled = true }

local function typed(name, bytes, storage) return { name = name, bytes = bytes, storage = storage } end
local u8, u16, i16, i32 =
    typed("u8", 1, "uint8_t"), typed("u16", 2, "uint16_t"), typed("i16", 2, "int16_t"), typed("i32", 4, "int32_t")

-- The type of the projection's weights of that name; raises one line for another.
function integer_plan.projection_type(name)
    for _, row in ipairs(projection_types) do
        if row.name == (name or "i16") then return row end
    end
    error(
        '--projection: "'
            .. name
            .. '": must be one of '
            .. table.concat(integer_plan.projection_names, ", ")
            .. " with --arithmetic integer",
        0
    )
end

local function log2_ceiling(n)
    local bits = 0
    while 1 << bits < n do
        bits = bits + 1
    end
    return bits
end

-- The function `of` at 0, step, … for `count` steps as integers.
function integer_plan.tabulated(count, of)
    local list = {}
    for i = 0, count do
        list[i + 1] = math.floor(of(i) + 0.5)
    end
    return list
end

-- The constants of the score. Sizes have 12 binary places. An entry of `log2` is 2^15 log2(1 + exp(-2 |z|)) every 2^-5
-- up to 8, where it is 0 in 15 binary places; one of `power` is 2^15 2^-f every 2^-5. sum_shift makes a sum of tau
-- sizes one of 16 bits.
local function score_of(m)
    return {
        fraction = 12,
        log2_step = 7,
        log2_limit = 8 << 12,
        log2 = integer_plan.tabulated(256, function(i) return 32768 * math.log(1 + math.exp(-i / 16), 2) end),
        power_step = 10,
        power = integer_plan.tabulated(32, function(i) return 32768 * 2 ^ (-i / 32) end),
        sum_shift = log2_ceiling(m.tau),
        kind = m.score,
    }
end

-- LayerNorm: from x to round(2^fraction (x - mean) / sqrt(variance + eps)). `gain` is 2^15 sqrt(d) / 2^log2_root. eps
-- in units of the sum of squares of d x - sum of x, shifted right by at least `least_shift`.
function integer_plan.normalise(m, unit)
    if not m.norm then return nil end
    local root = m.d ^ 0.5
    local log2_root = 0
    while 2 ^ log2_root < root do
        log2_root = log2_root + 1
    end
    local n =
        { log2_root = log2_root, gain = math.floor(32768 * root / 2 ^ log2_root + 0.5), fraction = 15 - log2_root }
    -- The largest |normalised| is sqrt(d - 1), computed with a relative error below 2^-10.
    if (m.d - 1) ^ 0.5 * 2 ^ n.fraction * (1 + 2 ^ -10) > 32766 then n.fraction = n.fraction - 1 end
    n.shift = 7 + 15 - log2_root - n.fraction
    local eps = m.d ^ 3 * m.norm.eps / (unit * unit)
    n.least_shift = 0
    while eps * 2.0 ^ (-2 * n.least_shift) >= 2 ^ 31 do
        n.least_shift = n.least_shift + 1
    end
    n.eps = math.floor(eps * 2.0 ^ (-2 * n.least_shift) + 0.5)
    return n
end

local function dense_projection(inputs, outputs)
    local p = product.plan(
        { count = 1, rows = inputs, outputs = outputs, folds = 1, x_stride = 0 },
        0,
        1,
        { at = 0, block = 0, fold = 0, row = 1, output = inputs }
    )
    p.first_block = 0
    return {
        groups = {
            {
                first = 0,
                count = 1,
                words = p.words,
                at = 0,
                need = outputs,
                stages = {
                    { number = 4, source = "x", target = "z", products = { p }, passes = {}, outputs = outputs },
                },
            },
        },
        words = p.words,
        flops = p.flops,
        rows = { z = outputs },
    }
end

-- Gives every product the places of its multipliers, one an output, and every stage its blocks. Returns the number of
-- multipliers.
local function place_multipliers(shape, projection)
    local at = 0
    for _, group in ipairs(projection.groups) do
        group.multiplier_at, group.multipliers = at, 0
        for _, stage in ipairs(group.stages) do
            stage.last = stage.number == 4
            stage.rows = stage.last and group.need or shape.padded
            -- The transform over whole blocks: `blocks` of `width` rows.
            stage.blocks = shape.kind == "bh4" and math.max(1, stage.outputs // shape.block) or 1
            stage.width = stage.outputs // stage.blocks
            for _, p in ipairs(stage.products) do
                p.target_at = p.first_block * p.outputs
                p.multiplier_at = group.multipliers
                group.multipliers = group.multipliers + p.count * p.outputs
            end
        end
        at = at + group.count * group.multipliers
    end
    return at
end

-- places in the section `shifts`; then three stages of every repeat
integer_plan.shifts = { "z", "residual", "score", "y" }

-- The stages of all repeats one after the other, as the packer walks through them.
local function steps_of(shape, projection)
    local list = {}
    for _, group in ipairs(projection.groups) do
        for r = 0, group.count - 1 do
            local repeat_number = group.first + r
            for _, stage in ipairs(group.stages) do
                local step = {
                    first = stage.source == "x",
                    last = stage.last,
                    blocks = stage.blocks,
                    width = stage.width,
                    rows = stage.rows,
                    z_at = repeat_number * shape.padded,
                    shift_at = #integer_plan.shifts + 3 * repeat_number + stage.number - 1,
                    products = {},
                }
                if shape.kind == "dense" then step.z_at = 0 end
                for i, p in ipairs(stage.products) do
                    step.products[i] = {
                        count = p.count,
                        rows = p.rows,
                        outputs = p.outputs,
                        folds = p.folds,
                        fold_gap = p.fold_gap,
                        x_at = p.first_block * p.x_stride,
                        x_stride = p.x_stride,
                        target_at = p.target_at,
                        weight_at = p.at + r * group.words,
                        multiplier_at = group.multiplier_at + r * group.multipliers + p.multiplier_at,
                        from = p.source.at + r * 4 * shape.padded * shape.block,
                        block = p.source.block,
                        fold = p.source.fold,
                        row = p.source.row,
                        output = p.source.output,
                    }
                end
                list[#list + 1] = step
            end
        end
    end
    return list
end

-- A dense layer of `inputs` inputs and `outputs` outputs alone: its projection with places of multipliers, and the
-- packer's steps.
function integer_plan.dense_layer(inputs, outputs)
    local shape, projection =
        { kind = "dense", d = inputs, padded = inputs, block = 0 }, dense_projection(inputs, outputs)
    place_multipliers(shape, projection)
    return projection, steps_of(shape, projection)
end

function integer_plan.typed(name) return ({ u8 = u8, u16 = u16, i16 = i16, i32 = i32 })[name] end

local function sections_of(m, shape, projection, multipliers, residual, pitch)
    local list, by_name = {}, {}
    local function add(name, dtype, elements, doc)
        local section = {
            name = name,
            dtype = dtype,
            type = dtype.name,
            elements = elements,
            storage = dtype.storage,
            count = elements,
            doc = doc,
        }
        list[#list + 1], by_name[name] = section, section
    end
    add(
        "projection",
        shape.projection,
        projection.words,
        "weights of the projection, a row of inputs for each output of a block"
    )
    add("multipliers", i16, multipliers, "2^16 times the unit of each of those rows in units of its stage's sums")
    add(
        "shifts",
        u8,
        #integer_plan.shifts + (shape.kind == "bh4" and 3 * shape.repeats or 0),
        "of |z|, residual, score and y" .. (shape.kind == "bh4" and ", then of three stages of each repeat" or "")
    )
    add(
        "projection_bias",
        i32,
        shape.bits,
        "bias of z in units of z" .. (m.norm and ", LayerNorm's offset folded in" or "")
    )
    if residual then
        add(
            "residual",
            i16,
            shape.d,
            "(1 - decay) times " .. (m.norm and "LayerNorm's gain, " or "2^n, ") .. "in units of z, before its shift"
        )
    end
    add(
        "table_scales",
        u16,
        shape.h * shape.rows,
        "[" .. shape.h .. "][" .. shape.rows .. "] units of the tables' rows in the largest one's"
    )
    add(
        "tables",
        tables_type,
        shape.h * shape.rows * pitch,
        "[" .. shape.h .. "][" .. shape.rows .. "][" .. pitch .. "] tables, rows of " .. shape.d_out
    )
    add("bias", i32, shape.d_out, "bias of y in units of its sums")
    return list, by_name, blob.place(list)
end

-- What the packer is told; see gen/weights/integer.h.
local function packing_of(m, shape, p)
    local at = {}
    for name, section in pairs(p.by_name) do
        at[name] = section.at
    end
    local steps = p.steps
    return {
        name = "projection",
        d = shape.d,
        d_out = shape.d_out,
        h = shape.h,
        tau = shape.tau,
        bits = shape.bits,
        padded = shape.padded,
        most = shape.projection.most,
        at = at,
        steps = steps,
        unit = p.normalise and 2.0 ^ -p.normalise.fraction or p.unit, -- of the projection's input
        -- its largest Euclidean norm, 0: only its elements are bounded
        length = p.normalise and (m.d ^ 0.5 * (1 + 2 ^ -9)) or 0,
        gelu = m.score == "gelu",
        sum_shift = p.score.sum_shift,
        size_fraction = p.score.fraction,
        fraction = p.fraction,
        pitch = p.pitch,
        shift_names = integer_plan.shifts,
        projection = {
            from = "hash.projection.weight",
            shape = lookup_sections.projection_shape(shape),
            blocks = shape.kind == "bh4" and shape.block or 0,
            steps = lookup_sections.projection_steps(m, shape),
        },
        bias = { from = "hash.projection.bias", shape = { shape.bits }, steps = lookup_sections.bias_steps(m, shape) },
        -- Without a norm the residual is the input itself.
        residual = p.residual
                and m.norm
                and { from = "LayerNorm.weight", shape = { shape.d }, steps = lookup_sections.residual_steps(shape) }
            or nil,
        residual_share = p.residual and 1 - shape.decay or 0,
        tables = {
            from = "tables",
            shape = { shape.h, shape.rows, shape.d_out },
            steps = lookup_sections.table_steps(m, shape),
        },
        output_bias = { from = "bias", shape = { shape.d_out }, steps = {} },
    }
end

-- Instruction sets without words of their own for integers take portable C.
function integer_plan.words(set)
    return {
        name = set.name,
        lanes = 1,
        flags = {},
        includes = {},
        vector = "int32_t",
        load = set.load,
        store = set.store,
        add = set.add,
        sub = set.sub,
    }
end

local function variant_of(p, set)
    local m, shape, projection = p.model, p.shape, p.projection_plan
    local v = { isa = integer_plan.words(set), tile = 1, chunk = 1, schedule_text = "", projection = projection }
    local buffers = {}
    local function add(name, bytes, storage) buffers[#buffers + 1] = { name = name, bytes = bytes, storage = storage } end
    if p.normalise then add("normalised", shape.d * 2, "int16_t") end
    if shape.kind == "bh4" then
        add("values", shape.padded * 2, "int16_t")
        add("sums", shape.padded * 4, "int32_t")
    end
    add("z", projection.rows.z * 4, "int32_t")
    add("row", shape.h * 4, "uint32_t")
    add("score", shape.h * 4, "int32_t")
    v.buffers = buffers
    v.scratch, v.scratch_bytes = plan.scratch_of(buffers, 8)
    v.names = {
        normalise = names.variant(m.name, "normalise_i16", v.isa.name),
        projection = names.variant(m.name, shape.kind .. "_" .. shape.projection.name, v.isa.name),
        hash = names.variant(m.name, "sign_hash_" .. m.score .. "_i32", v.isa.name),
        gather = names.variant(m.name, "gather_i8", v.isa.name),
        project = names.variant(m.name, "project", v.isa.name),
        ffn = names.variant(m.name, "ffn", v.isa.name),
    }
    return v
end

-- The plan of model `m` for the first of `isas`, which must be portable C, with the projection's weights of the type of
-- that name (default i16). `target`, a row of gen/plan/target.lua: for its firmware.
function integer_plan.build(m, isas, tables, projection_name, target)
    if tables and tables ~= "i8" then error('--tables: "' .. tables .. '": must be i8 with --arithmetic integer', 0) end
    if isas[1].name ~= "scalar" then
        error('--isa: "' .. isas[1].name .. '": must be scalar with --arithmetic integer', 0)
    end
    if m.neighbours > 1 then
        validated.refuse(m, { "neighbours" }, m.neighbours, "must be 1 with --arithmetic integer")
    end
    if m.d > integer_plan.most_d then
        validated.refuse(m, { "d" }, m.d, "must be at most " .. integer_plan.most_d .. " with --arithmetic integer")
    end
    if m.h > 4096 then validated.refuse(m, { "h" }, m.h, "must be at most 4096 with --arithmetic integer") end
    local shape = plan.shape(m, tables_type, integer_plan.projection_type(projection_name))
    local projection = shape.kind == "bh4" and bh4.plan(shape, 4, 1) or dense_projection(shape.d, shape.bits)
    local formats = m.integer or { input = 8.0, fraction = 16 }
    local p = {
        family = "integer",
        model = m,
        shape = shape,
        names = names.public(m.name),
        projection_plan = projection,
        unit = formats.input / 32768,
        fraction = formats.fraction,
        score = score_of(m),
        tensors = lookup_sections.tensors(m, shape),
        tables = shape.tables,
        projection = shape.projection,
        types = {},
        pitch = blob.round_up(shape.d_out, 4),
        residual = shape.kind == "bh4" and shape.decay < 1,
        dense_hidden = cost.dense_hidden(shape),
        options = { arithmetic = "integer", projection = shape.projection.name }, -- as the manifest records them
        pieces = {}, -- the packer makes all sections together
    }
    p.normalise = integer_plan.normalise(m, p.unit)
    local multipliers = place_multipliers(shape, projection)
    p.sections, p.by_name, p.packed_bytes = sections_of(m, shape, projection, multipliers, p.residual, p.pitch)
    p.steps = steps_of(shape, projection)
    p.target, p.weights_struct_bytes = target, target and target.pointer_bytes * #p.sections or 8 * #p.sections + 8
    p.table_bytes, p.projection_bytes = shape.h * shape.rows * shape.d_out, projection.words * shape.projection.bytes
    local described = {}
    for i, section in ipairs(p.sections) do
        described[i] = { section.name, section.type, section.elements, section.at }
    end
    local decides = {}
    for key, value in pairs(m) do
        decides[key] = value
    end
    decides.budget, decides.integer = nil, formats
    p.digest = host.sha256(json.encode({
        format = blob.format,
        arithmetic = "integer",
        model = decides,
        sections = described,
        normalise = p.normalise,
        score = p.score,
    }, "compact"))
    p.integer_packing = { packing_of(m, shape, p) }
    p.variants = { variant_of(p, isas[1]) }
    p.scratch_bytes = p.variants[1].scratch_bytes
    p.mflop = {
        lookup = cost.lookup(shape),
        projection = projection.flops / 1e6,
        folded = cost.folded(shape, projection.flops),
        dense = cost.dense(shape),
    }
    return p
end

-- The stable JSON object of `plan --json`.
function integer_plan.summary(p)
    local sections, s = {}, p.shape
    for i, section in ipairs(p.sections) do
        sections[i] = { name = section.name, type = section.type, elements = section.elements, offset = section.at }
    end
    return {
        model = p.model,
        digest = p.digest,
        arithmetic = "integer",
        d = s.d,
        d_out = s.d_out,
        h = s.h,
        tau = s.tau,
        block = s.block,
        padded = s.padded,
        repeats = s.repeats,
        x_scale = p.unit,
        y_scale = 2.0 ^ -p.fraction,
        mflop_per_token = p.mflop.lookup,
        mflop_per_token_folded = p.mflop.folded,
        dense_mflop_per_token = p.mflop.dense,
        projection = s.projection.name,
        projection_bytes = p.projection_bytes,
        tables = s.tables.name,
        table_bytes = p.table_bytes,
        packed_bytes = p.packed_bytes,
        scratch_bytes = p.scratch_bytes,
        sections = sections,
    }
end

return integer_plan
