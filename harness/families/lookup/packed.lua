-- What checks of a LookupFFN in any arithmetic need: packed weights, and the model as the references want it.
local packing = require "gen.families.packing"
local weights = require "weights"

local packed = {}

packed.vectors = 4 -- tokens of the self-test of firmware

-- Raises the line that `make` would raise for a checkpoint in the options with other tensors than it wants.
function packed.check(p, options) packing.check(p, packing.files(options)) end

-- Packs the weights of the options, or random ones, for plan `p`. Returns the job's weights, prefix and blob.
function packed.make(p, directory, options)
    local files = packing.files(options, directory .. "/weights.bin")
    if not files.weights then
        files.weights, files.prefix, files.blocks_in_out = directory .. "/sample.safetensors", "", nil
        assert(weights.sample(files.weights, files.prefix, p.tensors, options.seed))
    end
    packing.pack(p, files)
    return files
end

-- Token number `token` of x and y, strings of rows of so many values of a form of string.pack: { x, y }, lists of them.
function packed.vector(x_form, x, d, y_form, y, d_out, token)
    local function list(form, text, width)
        local numbers = { (form:rep(width)):unpack(text, token * width * form:packsize() + 1) }
        numbers[#numbers] = nil -- where the next one would begin
        return numbers
    end
    return { x = list(x_form, x, d), y = list(y_form, y, d_out) }
end

-- The form that the projection of a stage has, as harness/reference/fields.h wants it: "multiplied_out"; "bf16_inputs",
-- which it rounds as well; nil: the model's own.
function packed.form_of(stage)
    local tiled = stage.projection.tiled
    return stage.shape.of and (tiled and tiled.word == "tile_dot_bf16" and "bf16_inputs" or "multiplied_out") or nil
end

-- Whether the gathers of a stage, all alike, round scores to 8 bits.
function packed.has_byte_scores(stage)
    return stage.gathers[1].integers ~= nil and stage.gathers[1].byte_scores == 1
end

-- The LookupFFN `m` of d to d_out values as harness/reference/fields.h wants it.
function packed.reference_model(m, d, d_out)
    return {
        d = d,
        d_out = d_out,
        h = m.h,
        tau = m.tau,
        neighbours = m.neighbours,
        projection = m.projection.kind,
        block = m.projection.block,
        decay = m.projection.decay,
        score = m.score,
        scale = m.scale == "1/h" and 1 / m.h or 1.0,
        norm_eps = m.norm and m.norm.eps,
    }
end

return packed
