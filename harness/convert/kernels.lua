-- What a fit calls: the emitted training kernels of a LookupFFN, and emitted dense projections as the products of the
-- FFN that it learns from.
local compile = require "harness.base.compile"
local convert = require "convert"
local emit = require "gen.emit.emit"
local ffn_parts = require "gen.schema.ffn_parts"
local model_file = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local process = require "process"
local rounding = require "harness.train.rounding"

local kernels = {}

local function plan_of(given, sets, vectors)
    local wanted = vectors and { [sets[1].name] = { ["tile.vectors"] = vectors } }
    local p = plan.build(model_file.validate(given, "", given.name), sets, wanted, "f32", "f32")
    emit.add_training(p)
    return p
end

-- A dense product of `inputs` by `outputs` is the projection of a LookupFFN with tables of two rows.
local function product_plan(name, inputs, outputs, sets, vectors)
    return plan_of({
        name = name,
        d = inputs,
        d_out = 1,
        h = outputs,
        tau = 1,
        projection = { kind = "dense" },
        score = "gelu",
    }, sets, vectors)
end

local function product_job(p, weight, bias)
    local v, stage = p.variants[1], p.variants[1].stages[1]
    return {
        prepare = v.training.names.prepare,
        load = stage.names.load,
        product = stage.names.projection,
        prepared = p.training.prepared,
        scratch = p.training.scratch_bytes,
        weight = weight,
        bias = bias or ("\0"):rep(4 * p.shape.bits),
    }
end

-- What a fit calls of the LookupFFN of plan `p`, its sizes, and how tables and projection are rounded to `types`.
local function lookup_job(p, types)
    local shape, v, t = p.shape, p.variants[1], p.training
    local names, bh4 = v.training.names, shape.kind == "bh4"
    local job = {
        prepare = names.prepare,
        forward = names.forward,
        rows = names.rows,
        project = names.project,
        d = shape.d,
        h = shape.h,
        neighbours = shape.neighbours,
        table_rows = shape.rows,
        bits = shape.bits,
        projection = t.projection_floats,
        prepared = t.prepared,
        sums = t.sums.floats,
        sums_projection_bias = t.sums.projection_bias,
        sums_bias = t.sums.bias,
        pitch = p.pitch,
        z = t.z,
        slots = t.slots,
        tile = t.tile,
        whole = v.stages[1].tile,
        scratch = t.scratch_bytes,
        block = bh4 and shape.block or 0,
        blocks = bh4 and shape.padded // shape.block or 0,
        decay = bh4 and shape.decay or 1,
    }
    for _, tensor in ipairs(t.tensors) do
        job[tensor.kind .. "_rounding"] = rounding.of(tensor, types)
    end
    return job
end

-- Opens a fit of the lookup FFN of `block` to the dense FFN `dense` = { d, f, activation, and bytes of float32: input,
-- input_bias, gate, gate_bias, output, output_bias }, for at most `most` tokens a call. Returns it and its plan.
-- types: what tables and projection are rounded to (harness/train/rounding.lua).
function kernels.fit(block, dense, sets, most, types, options)
    local given = ffn_parts.add_lookup({ name = "convert_ffn", d = block.d }, block.ffn)
    local p = plan_of(given, sets)
    local linear = plan_of({
        name = "convert_bits",
        d = block.d,
        d_out = 1,
        h = p.shape.bits,
        tau = 1,
        projection = given.projection,
        score = "gelu",
    }, sets)
    local input = product_plan("convert_in", dense.d, dense.f, sets)
    local output = product_plan("convert_out", dense.f, dense.d, sets, input.variants[1].stages[1].vectors)
    local path =
        compile.library({ p, linear, input, output }, process.temporary_directory(), options.cc, options.cflags)
    local fit = assert(convert.open {
        library = path,
        lookup = lookup_job(p, types),
        linear = lookup_job(linear, {}),
        input = product_job(input, dense.input, dense.input_bias),
        gate = dense.gate and product_job(input, dense.gate, dense.gate_bias) or nil,
        output = product_job(output, dense.output, dense.output_bias),
        f = dense.f,
        tile = input.variants[1].stages[1].tile,
        activation = dense.activation,
        most = most,
    })
    return fit, p
end

return kernels
