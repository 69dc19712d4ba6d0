-- What the templates of the dense FFN beside a model print: kernels of transformers in float32, those of dense
-- projections in integers.
local integer_kernels = require "gen.families.integer.print"
local kernels = require "gen.families.lookup.print"
local layout = require "gen.families.transformer.layout"
local literal = require "gen.print.literal"
local transformer_kernels = require "gen.families.transformer.print"

local dense_ffn_kernels = {}

local function values_of(p)
    local integer = p.arithmetic ~= nil
    return {
        integer = integer,
        norm = p.norm ~= nil,
        input = integer and "int16_t" or "float",
        output = integer and "int32_t" or "float",
        x_scale = integer and literal.float(p.unit) or "",
        y_scale = integer and literal.float(2.0 ^ -p.fraction) or "",
    }
end

-- The templates of the model's own files, and what they read beside the plan.
function dense_ffn_kernels.api(p)
    local values = values_of(p)
    values.header, values.source, values.prototypes, values.openmp, values.register_barriers, values.statuses =
        "templates/baseline/model.h", "templates/baseline/model.c", "templates/baseline/prototypes.h", false, false, {}
    values.constants = p.constants
    if values.integer then
        values.functions, values.storage, values.gathers = "templates/integer/functions.h", p.projection.storage, false
        values.neon = integer_kernels.neon(p)
    end
    return values
end

-- The kernel files of variant `v` of plan `p`: { {template, symbol, values} }.
function dense_ffn_kernels.files(p, v)
    local files = {}
    local function add(path, symbol, helper, extend)
        local values = values_of(p)
        local own = {
            isa = v.isa,
            v = v,
            lanes = v.isa.lanes,
            symbol = symbol,
            prologue = kernels.prologue(p, v.isa),
            helper = p.names.model .. "_" .. helper,
            normalise = p.normalise or false,
            residual = false,
            panel = layout.panel,
            type = p.shape.type or false,
            activation = "gelu",
            gelu = p.gelu or false,
            initialiser = integer_kernels.initialiser,
            in_scratch = integer_kernels.in_scratch(p, v),
        }
        for key, value in pairs(own) do
            values[key] = value
        end
        if extend then extend(values) end
        files[#files + 1] = { template = path, symbol = symbol, values = values }
    end
    if not p.arithmetic then
        if p.norm then
            add("templates/lookup/few/normalise.c", v.names.normalise, "normalise", function(values)
                values.eps, values.one_over_d = literal.float(p.norm.eps), literal.float(1 / p.shape.d)
            end)
        end
        add(
            "templates/transformer/product.c",
            v.names.product,
            "product",
            function(values) transformer_kernels.product_values(p, v, values) end
        )
        add("templates/baseline/ffn_float.c", v.names.ffn, "ffn")
        return files
    end
    if p.norm then add("templates/integer/normalise.c", v.names.normalise, "normalise") end
    for _, layer in ipairs(p.layers) do
        add("templates/integer/projection.c", v.names[layer.name], layer.name, function(values)
            values.layer = {
                weights = layer.name,
                multipliers = layer.name .. "_multipliers",
                bias = layer.name .. "_bias",
                inputs = layer.inputs,
                outputs = layer.outputs,
                storage = p.projection.storage,
                bh4 = false,
            }
            integer_kernels.projection_values(p, layer.projection, values)
        end)
    end
    add("templates/baseline/ffn_integer.c", v.names.ffn, "ffn")
    return files
end

return dense_ffn_kernels
