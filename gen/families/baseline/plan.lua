-- The baseline: the dense FFN d -> 4d -> d_out with GELU that a LookupFFN replaces, planned with the same care and in
-- the same arithmetic, to be counted beside it. A norm comes first, as in the model; its gain and offset are part of
-- the first weights.
local blob = require "gen.plan.blob"
local constants = require "gen.families.integer.constants"
local cost = require "gen.plan.cost"
local dtype = require "gen.plan.dtype"
local host = require "host"
local integer_plan = require "gen.families.integer.plan"
local json = require "json"
local layout = require "gen.families.transformer.layout"
local maps = require "gen.families.transformer.maps"
local misuse = require "gen.model.misuse"
local names = require "gen.model.names"
local plan = require "gen.families.lookup.plan"
local product = require "gen.families.transformer.product"
local projection_of = require "gen.families.integer.projection"
local types = require "gen.families.integer.types"
local validated = require "gen.model.validated"

local dense_ffn_plan = {}

local hidden_fraction = 11 -- binary places of hidden values in integers, which saturate at 16

local function tensors_of(shape)
    return {
        { name = "ffn.first.weight", shape = { shape.hidden, shape.d }, mean = 0.0, deviation = shape.d ^ -0.5 },
        { name = "ffn.first.bias", shape = { shape.hidden }, mean = 0.0, deviation = 0.1 },
        {
            name = "ffn.second.weight",
            shape = { shape.d_out, shape.hidden },
            mean = 0.0,
            deviation = shape.hidden ^ -0.5,
        },
        { name = "ffn.second.bias", shape = { shape.d_out }, mean = 0.0, deviation = 0.1 },
    }
end

-- The choices of the product of gen/families/transformer/schedule.lua, for one token: as many sums as a model's own
-- kernels have.
local function product_schedule(set)
    local panel = layout.panel // set.lanes
    return {
        ["product.vectors"] = math.min(panel, 2),
        ["product.tokens"] = 1,
        ["product.depth"] = 1024,
        ["product.prefetch"] = 0,
        ["few.vectors"] = math.min(panel, 16),
        ["few.unroll"] = set.lanes == 1 and 1 or set.lanes // 4,
        ["few.prefetch"] = 0,
        ["few.streams"] = 1,
    }
end

local function float_parts(p, isas)
    local shape, f32, panel = p.shape, dtype.get "f32", layout.panel
    local function add(name, tensor, inputs, outputs)
        local map = { inputs = inputs, outputs = outputs, pitch = outputs }
        p.sections[#p.sections + 1] = {
            name = name,
            dtype = f32,
            type = "f32",
            storage = "float",
            elements = inputs * outputs,
            count = inputs * outputs,
            from = tensor .. ".weight",
            shape = { outputs, inputs },
            slices = outputs // panel,
            steps = {},
            boxes = maps.boxes(map, true),
            doc = "[" .. outputs // panel .. "][" .. inputs .. " inputs][" .. panel .. " outputs]",
        }
        p.sections[#p.sections + 1] = {
            name = name .. "_bias",
            dtype = f32,
            type = "f32",
            storage = "float",
            elements = outputs,
            count = outputs,
            from = tensor .. ".bias",
            shape = { outputs },
            steps = {},
            boxes = { { from = 0, to = 0, dims = { { count = outputs, from = 1, to = 1 } } } },
            doc = "bias",
        }
    end
    add("first", "ffn.first", shape.d, shape.hidden)
    add("second", "ffn.second", shape.hidden, shape.d_out)
    p.packed_bytes = blob.place(p.sections)
    shape.type = f32
    for i, set in ipairs(isas) do
        local buffers = {
            { name = "normalised", bytes = p.norm and shape.d * 4 or 0, storage = "float" },
            { name = "hidden", bytes = shape.hidden * 4, storage = "float" },
        }
        local v =
            { isa = set, product = product.plan(product_schedule(set), set.lanes, f32), buffers = buffers, tile = 1 }
        v.scratch, v.scratch_bytes = plan.scratch_of(buffers)
        v.names = {
            normalise = names.variant(p.names.model, "normalise_f32", set.name),
            product = names.variant(p.names.model, "product_f32", set.name),
            ffn = names.variant(p.names.model, "ffn", set.name),
        }
        p.variants[i] = v
    end
end

local function integer_parts(p, m, isas, projection)
    if isas[1].name ~= "scalar" then
        misuse('--isa: "' .. isas[1].name .. '": must be scalar with --arithmetic integer')
    end
    local shape, type = p.shape, types.projection(projection)
    local formats = m.integer or { input = 8.0, fraction = 16 }
    shape.projection, shape.block, p.projection, p.arithmetic = type, 0, type, "integer"
    p.unit, p.fraction = formats.input / 32768, formats.fraction
    p.normalise = constants.normalise(m, p.unit)
    local by_name = {}
    local function section(name, dtype_row, elements, doc)
        local s = {
            name = name,
            dtype = dtype_row,
            type = dtype_row.name,
            storage = dtype_row.storage,
            elements = elements,
            count = elements,
            doc = doc,
        }
        p.sections[#p.sections + 1], by_name[name] = s, s
    end
    local layers = {
        { name = "first", inputs = shape.d, outputs = shape.hidden },
        { name = "second", inputs = shape.hidden, outputs = shape.d_out },
    }
    for _, layer in ipairs(layers) do
        layer.projection = projection_of.dense(layer.inputs, layer.outputs)
        section(layer.name, type, layer.inputs * layer.outputs, "[" .. layer.outputs .. "][" .. layer.inputs .. "]")
        section(
            layer.name .. "_multipliers",
            types.i16,
            layer.outputs,
            "2^16 times the unit of each output's weights in that of its sum"
        )
        section(layer.name .. "_bias", types.i32, layer.outputs, "bias in units of the sums")
    end
    section("shifts", types.u8, 4, "of hidden values, and of y at 1")
    p.packed_bytes, p.layers, p.pieces, p.integer_packing = blob.place(p.sections), layers, {}, {}
    for i, layer in ipairs(layers) do
        p.integer_packing[i] = {
            name = layer.name,
            d = layer.inputs,
            bits = layer.outputs,
            padded = layer.inputs,
            max_weight = type.max,
            steps = layer.projection.steps,
            residual_share = 0,
            at = {
                projection = by_name[layer.name].at,
                multipliers = by_name[layer.name .. "_multipliers"].at,
                projection_bias = by_name[layer.name .. "_bias"].at,
                shifts = by_name.shifts.at + i - 1,
            },
            unit = i == 2 and 2.0 ^ -hidden_fraction or p.normalise and 2.0 ^ -p.normalise.fraction or p.unit,
            length = i == 1 and p.normalise and m.d ^ 0.5 * (1 + 2 ^ -9) or 0,
            magnitude_fraction = i == 1 and hidden_fraction or p.fraction,
            projection = {
                from = "ffn." .. layer.name .. ".weight",
                shape = { layer.outputs, layer.inputs },
                steps = {},
            },
            bias = { from = "ffn." .. layer.name .. ".bias", shape = { layer.outputs }, steps = {} },
        }
    end
    -- |x| (1 - Phi(|x|)) every 2^-5 up to 8, in units of hidden values; GELU is max(x, 0) less that. Phi by its series,
    -- which ends before 8.
    p.gelu = {
        fraction = hidden_fraction,
        step = hidden_fraction - 5,
        limit = 8 << hidden_fraction,
        rest = constants.tabulated(256, function(i)
            local x = i / 32
            local term, sum, n = x, x, 1
            while n < 400 do
                term = term * x * x / (2 * n + 1)
                sum, n = sum + term, n + 1
            end
            return (1 << hidden_fraction) * x * (0.5 - sum * math.exp(-x * x / 2) / (2 * math.pi) ^ 0.5)
        end),
    }
    local buffers = {
        { name = "normalised", bytes = p.normalise and shape.d * 2 or 0, storage = "int16_t" },
        { name = "sums", bytes = math.max(shape.hidden, shape.d_out) * 4, storage = "int32_t" },
        { name = "hidden", bytes = shape.hidden * 2, storage = "int16_t" },
    }
    local v = { isa = integer_plan.words(isas[1]), tile = 1, buffers = buffers, projection = layers[1].projection }
    v.scratch, v.scratch_bytes = plan.scratch_of(buffers, 8)
    v.names = {
        normalise = names.variant(p.names.model, "normalise_i16", "scalar"),
        first = names.variant(p.names.model, "first_" .. type.name, "scalar"),
        second = names.variant(p.names.model, "second_" .. type.name, "scalar"),
        ffn = names.variant(p.names.model, "ffn", "scalar"),
    }
    p.variants = { v }
end

-- The offsets that kernels use by name; all instruction sets share them.
local function constants_of(p)
    local v, list = p.variants[1], {}
    for _, buffer in ipairs(v.buffers) do
        if buffer.bytes > 0 then
            list[#list + 1] =
                { name = "SCRATCH_" .. buffer.name:upper(), value = v.scratch[buffer.name], doc = "bytes into scratch" }
        end
    end
    for i, name in ipairs(p.arithmetic and { "SHIFT_HIDDEN", "SHIFT_Y" } or {}) do
        list[#list + 1] = { name = name, value = i - 1, doc = "place among the shifts" }
    end
    return list
end

-- The plan of the baseline of model `m`, in integer arithmetic if `integer`, with weights of the type `projection`.
function dense_ffn_plan.build(m, isas, integer, projection)
    local hidden = cost.dense_hidden { d = m.d }
    if hidden % layout.panel ~= 0 then
        validated.refuse(m, { "d" }, m.d, "must be a multiple of 8 for the dense FFN beside it")
    end
    if m.d_out % layout.panel ~= 0 then
        validated.refuse(m, { "d_out" }, m.d_out, "must be a multiple of 32 for the dense FFN beside it")
    end
    if m.d > integer_plan.max_d then
        validated.refuse(m, { "d" }, m.d, "must be at most " .. integer_plan.max_d .. " for the dense FFN beside it")
    end
    local shape = { kind = "dense_ffn", d = m.d, d_out = m.d_out, hidden = hidden }
    local p = {
        family = "baseline",
        model = m,
        shape = shape,
        names = names.public(m.name .. "_dense"),
        sections = {},
        variants = {},
        norm = m.norm,
        options = { baseline = true },
        tensors = tensors_of(shape),
        scratch_bytes = 0,
    }
    if integer then
        integer_parts(p, m, isas, projection)
        p.options.arithmetic, p.options.projection = "integer", p.projection.name
    else
        if projection then
            misuse('--projection: "' .. projection .. '": the dense FFN is float32 without --arithmetic integer')
        end
        float_parts(p, isas)
    end
    for _, v in ipairs(p.variants) do
        p.scratch_bytes = math.max(p.scratch_bytes, v.scratch_bytes)
    end
    p.weights_struct_bytes = 8 * #p.sections + 8
    p.constants = constants_of(p)
    local described = {}
    for i, s in ipairs(p.sections) do
        described[i] = { s.name, s.type, s.elements, s.at }
    end
    p.digest = host.sha256(json.encode({
        format = blob.format,
        baseline = m.name,
        norm = m.norm,
        sections = described,
        unit = p.unit,
        fraction = p.fraction,
    }, "compact"))
    return p
end

return dense_ffn_plan
