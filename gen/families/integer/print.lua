-- What the templates of integer kernels print: from the plan's numbers to the names, lists and words that a template
-- loops over.
local kernels = require "gen.families.lookup.print"
local literal = require "gen.print.literal"

local integer_kernels = {}

local sum = literal.sum

-- Sums of products in <model>_runtime.h, by the C type of weights: portable C, and instructions of cores that have
-- better ones.
local products = {
    int16_t = [[
#if defined(__ARM_FEATURE_DSP)
typedef int32_t __attribute__((may_alias, aligned(2))) $pair;

/* sum + x[0] w[0] + x[1] w[1] */
static inline int32_t $dot2(int32_t sum, const int16_t *x, const int16_t *w)
{
    return __smlad(*(const $pair *) (const void *) x, *(const $pair *) (const void *) w, sum);
}
#else
/* sum + x[0] w[0] + x[1] w[1] */
static inline int32_t $dot2(int32_t sum, const int16_t *x, const int16_t *w)
{
    return sum + x[0] * w[0] + x[1] * w[1];
}
#endif
]],
    int8_t = [[
/* sum + x[0] w[0] + x[1] w[1] */
static inline int32_t $dot2(int32_t sum, const int16_t *x, const int8_t *w)
{
    return sum + x[0] * w[0] + x[1] * w[1];
}

#if defined(__ARM_FEATURE_DSP)
typedef uint32_t __attribute__((may_alias, aligned(1))) $word;

/* The same of four: weights 0 and 2, then 1 and 3, in halves of a word. */
static inline int32_t $dot4(int32_t sum, const int16_t *x, const int8_t *w)
{
    const uint32_t low = *(const $word *) (const void *) x, high = *(const $word *) (const void *) (x + 2), all = *(const $word *) (const void *) w;
    const uint32_t even = (low & 0xffffu) | high << 16, odd = low >> 16 | (high & 0xffff0000u);
    return __smlad((int32_t) odd, __sxtb16((int32_t) (all >> 8 | all << 24)), __smlad((int32_t) even, __sxtb16((int32_t) all), sum));
}
#else
/* The same of four. */
static inline int32_t $dot4(int32_t sum, const int16_t *x, const int8_t *w)
{
    return $dot2($dot2(sum, x, w), x + 2, w + 2);
}
#endif]],
}

local words = [[
#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE & 1
#include <arm_mve.h>
#endif
#if defined(__ARM_FEATURE_DSP)
#include <arm_acle.h>
#endif

/* floor(value factor / 2^16), exact for 0 <= factor < 2^15. */
static inline int32_t $scaled(int32_t value, int32_t factor)
{
#if defined(__ARM_FEATURE_DSP)
    return (int32_t) ((int64_t) value * factor >> 16);
#else /* products of 32 bits only, which every core has */
    return (value >> 16) * factor + (int32_t) (((uint32_t) value & 0xffffu) * (uint32_t) factor >> 16);
#endif
}

/* round(value / 2^shift), halves up. */
static inline int32_t $rounded(int32_t value, unsigned shift)
{
    return (value + ((1 << shift) >> 1)) >> shift;
}
]]

-- Sums of y in <model>_runtime.h: as many columns at a time as registers hold.
integer_kernels.gather_functions = [[
#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE & 1
#define $$_STRIP 16 /* columns of y that are summed together */

typedef struct {
    int32x4_t part[4];
} $sums;

static inline void $begin(const int32_t *bias, $sums *sums)
{
    sums->part[0] = vld1q_s32(bias);
    sums->part[1] = vld1q_s32(bias + 4);
    sums->part[2] = vld1q_s32(bias + 8);
    sums->part[3] = vld1q_s32(bias + 12);
}

static inline void $add(int32_t factor, const int8_t *entry, $sums *sums)
{
    sums->part[0] = vmlaq_n_s32(sums->part[0], vldrbq_s32(entry), factor);
    sums->part[1] = vmlaq_n_s32(sums->part[1], vldrbq_s32(entry + 4), factor);
    sums->part[2] = vmlaq_n_s32(sums->part[2], vldrbq_s32(entry + 8), factor);
    sums->part[3] = vmlaq_n_s32(sums->part[3], vldrbq_s32(entry + 12), factor);
}

static inline void $end(const $sums *sums, unsigned shift, int32_t *y)
{
    vst1q_s32(y, vrshlq_s32(sums->part[0], vdupq_n_s32(-(int32_t) shift)));
    vst1q_s32(y + 4, vrshlq_s32(sums->part[1], vdupq_n_s32(-(int32_t) shift)));
    vst1q_s32(y + 8, vrshlq_s32(sums->part[2], vdupq_n_s32(-(int32_t) shift)));
    vst1q_s32(y + 12, vrshlq_s32(sums->part[3], vdupq_n_s32(-(int32_t) shift)));
}
#else
#define $$_STRIP 4 /* columns of y that are summed together */

typedef struct {
    int32_t part[4];
} $sums;

/* sums = bias */
static inline void $begin(const int32_t *bias, $sums *sums)
{
    sums->part[0] = bias[0];
    sums->part[1] = bias[1];
    sums->part[2] = bias[2];
    sums->part[3] = bias[3];
}

/* sums += factor entry */
static inline void $add(int32_t factor, const int8_t *entry, $sums *sums)
{
    sums->part[0] += factor * entry[0];
    sums->part[1] += factor * entry[1];
    sums->part[2] += factor * entry[2];
    sums->part[3] += factor * entry[3];
}

/* y = round(sums / 2^shift) */
static inline void $end(const $sums *sums, unsigned shift, int32_t *y)
{
    y[0] = $rounded(sums->part[0], shift);
    y[1] = $rounded(sums->part[1], shift);
    y[2] = $rounded(sums->part[2], shift);
    y[3] = $rounded(sums->part[3], shift);
}
#endif
]]

local together = 4 -- outputs that share their inputs

-- Eight products of each of four outputs: in one instruction an output, or as many at a time as the words above have.
local function eights(storage)
    local width, lines = storage == "int16_t" and 2 or 4, {}
    local function add(...) lines[#lines + 1] = string.format(...) end
    add "/* Adds eight products to each of four outputs, whose weights are `step` apart. */"
    add("static inline void $dots8(int32_t *sum, const int16_t *x, const %s *w, size_t step)", storage)
    add "{"
    add "#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE & 1"
    add "    const int16x8_t inputs = vld1q_s16(x);"
    local function row(s, at) return s == 0 and sum("w", at) or sum("w + " .. (s == 1 and "step" or s .. " * step"), at) end
    for s = 0, together - 1 do
        add(
            "    sum[%d] = vmladavaq_s16(sum[%d], inputs, %s(%s));",
            s,
            s,
            storage == "int16_t" and "vld1q_s16" or "vldrbq_s16",
            row(s, 0)
        )
    end
    add "#else"
    for at = 0, 7, width do
        for s = 0, together - 1 do
            add("    sum[%d] = $dot%d(sum[%d], %s, %s);", s, width, s, sum("x", at), row(s, at))
        end
    end
    add "#endif"
    add "}"
    return table.concat(lines, "\n")
end

-- The lines of all these words, and of `gathers`, if there are any.
function integer_kernels.functions(storage, gathers)
    local lines = {}
    local text = words
        .. "\n"
        .. products[storage]:gsub("\n$", "")
        .. "\n\n"
        .. eights(storage)
        .. "\n"
        .. (gathers and "\n" .. gathers or "")
    for line in text:gmatch("([^\n]*)\n") do
        lines[#lines + 1] = line
    end
    return lines
end

-- The templates of the model's own files, and what they read beside the plan.
function integer_kernels.api(p)
    return {
        header = p.target and "templates/firmware/model.h" or "templates/integer/model.h",
        source = p.target and "templates/firmware/model.c" or "templates/integer/model.c",
        prototypes = "templates/integer/prototypes.h",
        openmp = false,
        keeps = false,
        statuses = {},
        integers = true,
        input = "int16_t",
        output = "int32_t",
        layer_text = "templates/integer/layer.h",
        shape_text = "templates/integer/shape.h",
        ffn_text = "templates/integer/ffn.h",
        formula = kernels.formula(p),
        x_scale = literal.float(p.unit),
        y_scale = literal.float(2.0 ^ -p.fraction),
        fraction = p.fraction,
        norm = p.normalise ~= nil,
        functions = integer_kernels.functions(
            p.projection.storage,
            integer_kernels.gather_functions:gsub("%$%$", p.names.model:upper())
        ),
    }
end

-- Integers as lines of a C initialiser, 16 to a line.
function integer_kernels.initialiser(list)
    local lines = {}
    for first = 1, #list, 16 do
        lines[#lines + 1] = table.concat(list, ", ", first, math.min(first + 15, #list)) .. ","
    end
    return lines
end

local function block_name(p)
    return "block_" .. p.rows .. "x" .. p.outputs .. (p.folds > 1 and "_folds" .. p.folds or "")
end

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
function integer_kernels.projection_values(p, projection, values)
    local blocks, passes, seen = {}, {}, {}
    local groups = projection.groups
    for i, group in ipairs(groups) do
        group.after = i < #groups
        for _, stage in ipairs(group.stages) do
            for _, item in ipairs(stage.products) do
                item.name, item.offset = block_name(item), item.at - group.at
                if not seen[item.name] then
                    seen[item.name] = true
                    blocks[#blocks + 1] = {
                        name = item.name,
                        rows = item.rows,
                        outputs = item.outputs,
                        folds = item.folds,
                        fold_gap = item.fold_gap,
                        depth = item.folds * item.rows,
                        strips = strips_of(item.outputs, together),
                    }
                end
            end
            kernels.name_passes(stage.passes, passes, seen)
        end
    end
    values.blocks, values.passes, values.groups = blocks, passes, groups
    values.blocks_total, values.stage_text =
        p.shape.block > 0 and p.shape.padded // p.shape.block or 1, kernels.describe_stage
    values.tile, values.lane_axis, values.values_type = 1, "", "int32_t"
end

-- The kernel files of variant `v` of plan `p`: { {template, symbol, values} }.
function integer_kernels.files(p, v)
    local files = {}
    local function add(path, symbol, extend)
        local values = {
            isa = v.isa,
            v = v,
            symbol = symbol,
            prologue = kernels.prologue(p, v.isa),
            helper = p.names.helper(false),
            normalise = p.normalise or false,
            size = p.score,
            pitch = p.pitch,
            residual = p.residual,
            fraction = p.fraction,
            lines_of = integer_kernels.initialiser,
        }
        if extend then extend(values) end
        files[#files + 1] = { template = path, symbol = symbol, values = values }
    end
    if p.normalise then add("templates/integer/normalise.c", v.names.normalise) end
    add("templates/integer/projection.c", v.names.projection, function(values)
        values.layer = {
            weights = "projection",
            multipliers = "multipliers",
            bias = "projection_bias",
            inputs = p.shape.d,
            outputs = p.shape.bits,
            storage = p.projection.storage,
            bh4 = p.shape.kind == "bh4",
        }
        integer_kernels.projection_values(p, v.projection, values)
    end)
    add("templates/integer/hash.c", v.names.hash)
    add("templates/integer/gather.c", v.names.gather)
    add("templates/integer/ffn.c", v.names.ffn)
    return files
end

return integer_kernels
