-- What the templates of integer kernels print: from the plan's numbers to the names, lists and words that a template loops over.
local kernels = require "gen.kernels"
local literal = require "gen.literal"

local integer_kernels = {}

local sum = literal.sum

-- Words of the kernels, in <model>_runtime.h: portable C, and instructions of cores that have better ones.
function integer_kernels.functions(storage)
    local signal = storage == "int16_t" -- pairs of inputs and of weights are as wide
    local lines = {
        "#if defined(__ARM_FEATURE_DSP)",
        "#include <arm_acle.h>",
        "",
        "static inline int32_t $scaled(int32_t value, int32_t factor)",
        "{",
        "    return (int32_t) ((int64_t) value * factor >> 16);",
        "}",
    }
    local function add(text)
        for line in (text .. "\n"):gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
    end
    if signal then
        add [[

typedef int32_t __attribute__((may_alias, aligned(2))) $pair;

static inline int32_t $dot2(int32_t sum, const int16_t *x, const int16_t *w)
{
    return __smlad(*(const $pair *) (const void *) x, *(const $pair *) (const void *) w, sum);
}]]
    end
    add [[
#else
/* floor(value factor / 2^16), exact for 0 <= factor < 2^15: products of 32 bits only, which every core has. */
static inline int32_t $scaled(int32_t value, int32_t factor)
{
    return (value >> 16) * factor + (int32_t) (((uint32_t) value & 0xffffu) * (uint32_t) factor >> 16);
}]]
    if not signal then add "#endif" end
    add([[

/* sum + x[0] w[0] + x[1] w[1] */
static inline int32_t $dot2(int32_t sum, const int16_t *x, const ]] .. storage .. [[ *w)
{
    return sum + x[0] * w[0] + x[1] * w[1];
}]])
    if signal then add "#endif" end
    add [[

/* round(value / 2^shift), halves up. */
static inline int32_t $rounded(int32_t value, unsigned shift)
{
    return (value + ((1 << shift) >> 1)) >> shift;
}]]
    return lines
end

-- The templates of the model's own files, and what they read beside the plan.
function integer_kernels.api(p)
    return {
        header = p.target and "templates/firmware.h" or "templates/integer_model.h", source = p.target and "templates/firmware.c" or "templates/integer_model.c",
        prototypes = "templates/integer_prototypes.h", openmp = false, statuses = {}, integers = true, input = "int16_t", output = "int32_t",
        layer_text = "templates/integer_layer.h", shape_text = "templates/integer_shape.h", ffn_text = "templates/integer_ffn_prototype.h",
        formula = kernels.formula(p), x_scale = literal.float(p.unit), y_scale = literal.float(2.0 ^ -p.fraction), fraction = p.fraction,
        norm = p.normalise ~= nil, functions = integer_kernels.functions(p.projection.storage),
    }
end

-- Integers as lines of a C initialiser, 16 to a line.
function integer_kernels.initialiser(list)
    local lines = {}
    for first = 1, #list, 16 do lines[#lines + 1] = table.concat(list, ", ", first, math.min(first + 15, #list)) .. "," end
    return lines
end

local function block_name(p) return "block_" .. p.rows .. "x" .. p.outputs .. (p.folds > 1 and "_folds" .. p.folds or "") end

-- Outputs of a block in strips of so many that share their inputs: { {at, count, together} }.
local function strips_of(outputs, together)
    local list, at = {}, 0
    while at < outputs do
        local n = outputs - at >= together and together or 1
        local count = (outputs - at) // n
        list[#list + 1] = { at = at, count = count, together = n }
        at = at + count * n
    end
    return list
end

-- What a projection's template reads; its groups are those of `projection`.
function integer_kernels.projection_values(p, v, projection, values)
    local blocks, passes, seen = {}, {}, {}
    local groups = projection.groups
    for i, group in ipairs(groups) do
        group.after = i < #groups
        for _, stage in ipairs(group.stages) do
            for _, item in ipairs(stage.products) do
                item.name, item.offset = block_name(item), item.at - group.at
                if not seen[item.name] then
                    seen[item.name] = true
                    blocks[#blocks + 1] = { name = item.name, rows = item.rows, outputs = item.outputs, folds = item.folds, fold_gap = item.fold_gap,
                        depth = item.folds * item.rows, strips = strips_of(item.outputs, v.together) }
                end
            end
            kernels.name_passes(stage.passes, passes, seen)
        end
    end
    values.blocks, values.passes, values.groups = blocks, passes, groups
    values.blocks_total, values.stage_text = p.shape.block > 0 and p.shape.padded // p.shape.block or 1, kernels.describe_stage
    values.tile, values.lane_axis, values.values_type = 1, "", "int32_t"
end

-- The kernel files of variant `v` of plan `p`: { {template, symbol, values} }.
function integer_kernels.files(p, v)
    local files = {}
    local function add(path, symbol, extend)
        local values = { isa = v.isa, v = v, symbol = symbol, prologue = kernels.prologue(p, v.isa), helper = p.names.helper(false), normalise = p.normalise or false,
            size = p.score, pitch = p.pitch, residual = p.residual, fraction = p.fraction, lines_of = integer_kernels.initialiser }
        if extend then extend(values) end
        files[#files + 1] = { template = path, symbol = symbol, values = values }
    end
    if p.normalise then add("templates/integer_normalise.c", v.names.normalise) end
    add("templates/integer_projection.c", v.names.projection, function(values)
        values.layer = { weights = "projection", multipliers = "multipliers", bias = "projection_bias", inputs = p.shape.d, outputs = p.shape.bits, storage = p.projection.storage, bh4 = p.shape.kind == "bh4" }
        integer_kernels.projection_values(p, v, v.projection, values)
    end)
    add("templates/integer_hash.c", v.names.hash)
    add("templates/integer_gather.c", v.names.gather, function(values) values.strips = strips_of(p.shape.d_out, v.together) end)
    add("templates/integer_ffn.c", v.names.ffn)
    return files
end

return integer_kernels
