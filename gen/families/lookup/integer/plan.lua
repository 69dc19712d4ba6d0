-- From a validated LookupFFN to the plan of its integer kernels: every size, offset, format and constant of arithmetic
-- without floating point.
--
-- What weights decide (units of rows and stages) the packer chooses and writes into the blob as integers: multipliers,
-- and shifts that are constant for all tokens. Everything else is a number here.
--   x       int16 in units of input / 2^15; with a norm, normalised to int16 with normalise.fraction binary places
--   stages  sums of int16 times weights in int32, times the multiplier of their output / 2^16, rounded down;
--           butterflies in int32; then a rounding shift back to int16
--   z       int32; bits are exact signs of it. Magnitudes |z| have score.fraction binary places, at most 16 bits
--   score   2^-(sum of log2(1 + exp(-2 |z|))) by two tables with linear interpolation, times the multiplier of the row
--           of the table; of a second row, whose code differs in the bit of least |z|, exp(-2 |z|) times that
--   y       int32 sums of scores times rows of int8, or of i4 as gen/plan/dtype.lua has it; a rounding shift to
--           `fraction` binary places
-- No intermediate value can overflow: the packer bounds all of them for every possible x.
local blob = require "gen.plan.blob"
local constants = require "gen.families.lookup.integer.constants"
local cost = require "gen.plan.cost"
local dtype = require "gen.plan.dtype"
local lookup_sections = require "gen.families.lookup.sections"
local misuse = require "gen.schema.misuse"
local names = require "gen.schema.names"
local plan = require "gen.families.lookup.plan"
local projection_of = require "gen.families.lookup.integer.projection"
local score = require "gen.plan.score"
local scratch = require "gen.families.lookup.scratch"
local types = require "gen.families.lookup.integer.types"
local validated = require "gen.schema.validated"

local integer_plan = {}

local max_d = 2048 -- so that d^2 sums stay in 32 bits

local function sections_of(m, shape, projection, residual, pitch)
    local list, by_name = {}, {}
    local function add(name, type, elements, doc)
        local section = {
            name = name,
            dtype = type,
            type = type.name,
            elements = elements,
            storage = type.storage,
            count = dtype.units(type, elements),
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
    add(
        "multipliers",
        types.i16,
        projection.multipliers,
        "2^16 times the unit of each of those rows in units of its stage's sums"
    )
    add(
        "shifts",
        types.u8,
        #projection_of.shifts + (shape.kind == "bh4" and 3 * shape.repeats or 0),
        "of |z|, residual, score and y" .. (shape.kind == "bh4" and ", then of three stages of each repeat" or "")
    )
    add(
        "projection_bias",
        types.i32,
        shape.bits,
        "bias of z in units of z" .. (m.norm and ", LayerNorm's offset folded in" or "")
    )
    if residual then
        add(
            "residual",
            types.i16,
            shape.d,
            "(1 - decay) times " .. (m.norm and "LayerNorm's gain, " or "2^n, ") .. "in units of z, before its shift"
        )
    end
    add(
        "table_scales",
        types.u16,
        shape.h * shape.rows,
        "[" .. shape.h .. "][" .. shape.rows .. "] units of the tables' rows in the largest one's"
    )
    add(
        "tables",
        shape.tables,
        shape.h * shape.rows * pitch,
        "[" .. shape.h .. "][" .. shape.rows .. "][" .. pitch .. "] tables, rows of " .. shape.d_out
    )
    by_name.tables.slow = true
    add("bias", types.i32, shape.d_out, "bias of y in units of its sums")
    return list, by_name, blob.place(list)
end

-- A bound of the sum of the shares that a token's rows of one table have. Those of a softmax sum to 1 at most; the
-- errors of the score's tables, 2.5e-4 in the logarithm of each of 16 bits and 1.3e-4 of its power, add less than 2^-8.
local function shares_of(shape)
    if shape.neighbours == 1 then return 1 end
    return shape.score.share and 1 + 2 ^ -8 or shape.neighbours
end

-- What the packer is told; see gen/weights/integer.h.
local function packing_of(m, shape, p)
    local at = {}
    for name, section in pairs(p.by_name) do
        at[name] = section.at
    end
    return {
        d = shape.d,
        d_out = shape.d_out,
        h = shape.h,
        tau = shape.tau,
        bits = shape.bits,
        padded = shape.padded,
        max_weight = shape.projection.max,
        at = at,
        steps = p.projection_plan.steps,
        unit = p.normalise and 2.0 ^ -p.normalise.fraction or p.unit, -- of the projection's input
        -- its largest Euclidean norm, 0: only its elements are bounded
        length = p.normalise and (m.d ^ 0.5 * (1 + 2 ^ -9)) or 0,
        along = shape.score.along,
        shares = shares_of(shape),
        sum_shift = p.score.sum_shift,
        magnitude_fraction = p.score.fraction,
        fraction = p.fraction,
        pitch = p.pitch,
        table_type = shape.tables.name,
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
            steps = lookup_sections.table_steps(m, shape, shape.rows),
        },
        output_bias = { from = "bias", shape = { shape.d_out }, steps = {} },
    }
end

-- Instruction sets without words of their own for integers take portable C.
local function words_of(set)
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
        mul = set.mul,
        broadcast = set.broadcast,
    }
end

local function variant_of(p, set)
    local m, shape, projection = p.model, p.shape, p.projection_plan
    local isa = words_of(set)
    local s = { isa = isa, constants = "SCRATCH_", tile = 1, chunk = 1, projection = projection, gathers = {} }
    local buffers = {}
    local function add(name, bytes, storage, doc)
        local buffer = { name = name, bytes = bytes, storage = storage, doc = doc }
        buffers[#buffers + 1] = buffer
    end
    if p.normalise then add("normalised", shape.d * 2, "int16_t", "x after LayerNorm") end
    if shape.kind == "bh4" then
        add("values", shape.padded * 2, "int16_t", "outputs of a stage")
        add("sums", shape.padded * 4, "int32_t", "outputs of a stage, not rounded yet")
    end
    add("z", projection.rows.z * 4, "int32_t", "outputs of the projection")
    add("row", shape.slots * 4, "uint32_t", "rows of the tables")
    add("score", shape.slots * 4, "int32_t", "scores of these")
    s.buffers = buffers
    s.scratch, s.scratch_bytes = scratch.places(buffers, 0, 8)
    s.names = {
        normalise = names.variant(m.name, "normalise_i16", isa.name),
        projection = names.variant(m.name, shape.kind .. "_" .. shape.projection.name, isa.name),
        hash = names.variant(m.name, "sign_hash_" .. shape.score.name .. "_i32", isa.name),
        gather = names.variant(m.name, "gather_" .. shape.tables.name, isa.name),
        project = names.variant(m.name, "project", isa.name),
        ffn = names.variant(m.name, "ffn", isa.name),
    }
    return { isa = isa, stages = { s }, names = s.names, scratch_bytes = s.scratch_bytes }
end

local shifted = { z = "|z|", residual = "the residual", score = "scores", y = "y" }

-- The offsets that kernels use by name.
local function constants_of(p)
    local list = {}
    local function add(name, value, doc) list[#list + 1] = { name = name, value = value, doc = doc } end
    add("ROW_PITCH", dtype.units(p.tables, p.pitch), "bytes from row to row of the tables")
    for i, name in ipairs(projection_of.shifts) do
        add("SHIFT_" .. name:upper(), i - 1, "place among shifts: of " .. shifted[name])
    end
    if p.shape.kind == "bh4" then
        add("SHIFT_STAGES", #projection_of.shifts, "place among shifts: of stages, three a repeat")
    end
    local s = p.variants[1].stages[1]
    for _, buffer in ipairs(s.buffers) do
        add(s.constants .. buffer.name:upper(), s.scratch[buffer.name], "bytes into scratch: " .. buffer.doc)
    end
    return table.move(p.projection_plan.constants, 1, #p.projection_plan.constants, #list + 1, list)
end

-- The plan of model `m` for the first of `isas`, which must be portable C, with these options: `projection`, the type
-- of the projection's weights (default i16), `tables`, that of the tables (i8), and `firmware`, a row of
-- gen/plan/target.lua.
function integer_plan.build(m, isas, options)
    local tables, target = types.tables(options.tables), options.firmware
    if isas[1].name ~= "scalar" then
        misuse('--isa: "' .. isas[1].name .. '": must be scalar with --arithmetic integer')
    end
    if m.neighbours > 2 then
        validated.refuse(m, { "neighbours" }, m.neighbours, "must be 1 or 2 with --arithmetic integer")
    end
    if m.neighbours == 2 and m.tau == 1 and score.get(m.score).along then
        local rule = 'must be 1 with --arithmetic integer where tau = 1 and score = "%s": a score would be negative'
        validated.refuse(m, { "neighbours" }, m.neighbours, rule:format(m.score))
    end
    if m.d > max_d then
        validated.refuse(m, { "d" }, m.d, "must be at most " .. max_d .. " with --arithmetic integer")
    end
    if m.h > 4096 then validated.refuse(m, { "h" }, m.h, "must be at most 4096 with --arithmetic integer") end
    local shape = plan.shape(m, tables, types.projection(options.projection))
    local projection = projection_of.plan(shape)
    local other_tables = tables ~= types.tables() and tables.name or nil
    local formats = m.integer or { input = 8.0, fraction = 16 }
    local p = {
        family = "lookup",
        exact = true,
        input = "int16_t",
        output = "int32_t",
        model = m,
        shape = shape,
        names = names.public(m.name),
        projection_plan = projection,
        unit = formats.input / 32768,
        fraction = formats.fraction,
        score = constants.score(m),
        tensors = lookup_sections.tensors(m, shape),
        tables = shape.tables,
        projection = shape.projection,
        pitch = blob.round_up(shape.d_out, dtype.held(tables, 4)), -- elements in words of four bytes
        residual = shape.kind == "bh4" and shape.decay < 1,
        dense_hidden = cost.dense_hidden(shape),
        -- as the manifest records them
        options = { arithmetic = "integer", projection = shape.projection.name, tables = other_tables },
        pack_options = " --arithmetic integer" .. (other_tables and " --tables " .. other_tables or ""),
        pieces = {}, -- the packer makes all sections together
    }
    p.normalise = constants.normalise(m, p.unit)
    p.sections, p.by_name, p.packed_bytes = sections_of(m, shape, projection, p.residual, p.pitch)
    p.target, p.weights_struct_bytes = target, target and target.pointer_bytes * #p.sections or 8 * #p.sections + 8
    p.table_bytes = dtype.size(tables, shape.h * shape.rows * shape.d_out)
    p.projection_bytes = projection.words * shape.projection.bytes
    local own = { arithmetic = "integer", normalise = p.normalise, score = p.score }
    p.digest = lookup_sections.digest(m, p.sections, formats, own)
    p.integer_packing = packing_of(m, shape, p)
    p.variants = { variant_of(p, isas[1]) }
    p.scratch_bytes = p.variants[1].scratch_bytes
    p.constants = constants_of(p)
    p.mflop = plan.mflop(shape, projection.flops)
    return p
end

return integer_plan
