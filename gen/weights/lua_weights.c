/* The Lua module `weights`: an interpreter of the plan's sections. It knows no shape of its own. */
#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/host/host.h"
#include "gen/weights/blob_header.h"
#include "gen/weights/calibrate.h"
#include "gen/weights/fold.h"
#include "gen/weights/fold_fields.h"
#include "gen/weights/integer.h"
#include "gen/weights/matmul.h"
#include "gen/weights/nearest.h"
#include "gen/weights/npy.h"
#include "gen/weights/quantise.h"
#include "gen/weights/random.h"
#include "gen/weights/rounded.h"
#include "gen/weights/shards.h"
#include "gen/weights/view.h"

#include <lauxlib.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ERROR_SIZE = 4096 + 256, LONGEST_NAME = 1024, RANDOM_VALUES = 4096 };

/* All that a packing in progress holds; freed in one place. */
typedef struct {
    lua_State *L;
    shards *checkpoint;
    const safetensors *file; /* that holds the section's tensor */
    const char *path, *prefix;
    bool blocks_in_out;
    unsigned char *blob;
    size_t blob_bytes;
    bool changed; /* the file is another one than before */
    double *data, *vector, *raw;
    quantise_tally tally; /* of the section */
    char error[ERROR_SIZE];
} packing;

static const char where[] = "weights: ";

/* The string stays alive as long as the table does. */
static const char *field_string(lua_State *L, int table, const char *name)
{
    lua_getfield(L, table, name);
    const char *value = luaL_checkstring(L, -1);
    lua_pop(L, 1);
    return value;
}

/* The tensor that the field `name` of a table names, with the shape in its field `shape`; NULL with a message. */
static const safetensors_tensor *find_tensor(packing *p, int table, const char *name)
{
    int64_t shape[SAFETENSORS_MAX_RANK];
    const int rank = field_dimensions(p->L, table, "shape", shape, SAFETENSORS_MAX_RANK);
    return shards_expect(p->checkpoint, p->prefix, field_string(p->L, table, name), shape, rank, &p->file, p->error, sizeof p->error);
}

/* All elements of the tensor `name`, from malloc; NULL with a message. */
static double *load_tensor(packing *p, const char *name, size_t *count)
{
    const safetensors *file;
    const safetensors_tensor *tensor = shards_expect(p->checkpoint, p->prefix, name, NULL, 0, &file, p->error, sizeof p->error);
    *count = tensor ? tensor->count : 0;
    return tensor ? safetensors_load(file, tensor, p->error, sizeof p->error) : NULL;
}

/* Reads the one-dimensional tensor `name` whole into p->vector. */
static bool read_vector(packing *p, const char *name)
{
    size_t count;
    free(p->vector);
    p->vector = load_tensor(p, name, &count);
    return p->vector != NULL;
}

/* data[count] += the projection of the vector p->vector: used for LayerNorm's offset. */
static bool add_projection(packing *p, int step, double *data)
{
    lua_State *L = p->L;
    const fold_projection shape = {field_size(L, step, where, "d"),       field_size(L, step, where, "bits"),
                                   field_size(L, step, where, "block"),   field_size(L, step, where, "padded"),
                                   field_size(L, step, where, "repeats"), field_number(L, step, where, "decay")};
    size_t count;
    free(p->raw);
    p->raw = load_tensor(p, "hash.projection.weight", &count);
    if (!p->raw)
        return false;
    if (p->blocks_in_out && shape.block)
        fold_transpose_blocks(p->raw, count, shape.block);
    if (fold_add_projection(&shape, p->raw, p->vector, data) == 0)
        return true;
    return files_error(p->error, sizeof p->error, "%s: not enough memory", p->path);
}

/* Runs the steps in the field `steps` of the section over data[count]. */
static bool run_steps(packing *p, int section, double *data, size_t count)
{
    lua_State *L = p->L;
    lua_getfield(L, section, "steps");
    const int steps = lua_gettop(L);
    bool ok = true;
    for (lua_Integer i = 1; ok && lua_rawgeti(L, steps, i) == LUA_TTABLE; ++i) {
        const int step = lua_gettop(L);
        const char *name = field_string(L, step, "step");
        fold_dim dims[FOLD_MAX_DIMS];
        if (strcmp(name, "hadamard") == 0) {
            fold_hadamard(data, count, field_size(L, step, where, "size"));
        } else if (strcmp(name, "scale") == 0) {
            const int rank = fold_field_dims(L, step, where, "by", dims);
            const size_t at = field_size(L, step, where, "at");
            luaL_argcheck(L, at + fold_farthest(dims, rank, true) < count, 1, "scale");
            fold_scale(data + at, dims, rank, field_number(L, step, where, "factor"), NULL);
        } else if (strcmp(name, "scale_by") == 0) {
            const int rank = fold_field_dims(L, step, where, "by", dims);
            const size_t at = field_size(L, step, where, "at");
            luaL_argcheck(L, at + fold_farthest(dims, rank, true) < count, 1, "scale_by");
            ok = read_vector(p, field_string(L, step, "tensor"));
            if (ok)
                fold_scale(data + at, dims, rank, 0, p->vector + field_size(L, step, where, "by_at"));
        } else if (strcmp(name, "add_projection_of") == 0) {
            ok = read_vector(p, field_string(L, step, "tensor")) && add_projection(p, step, data);
        } else {
            luaL_error(L, "unknown packing step %s", name);
        }
        lua_settop(L, steps);
    }
    lua_settop(L, steps - 1);
    return ok;
}

/* Copies a walk of rounded values to elements of the type, from element `at` on. */
static void copy_walk(const double *from, quantise_type type, void *to, size_t at, const fold_dim *dims, int rank)
{
    if (rank == 0) {
        quantise_store(type, *from, to, at);
        return;
    }
    for (size_t i = 0; i < dims->count; ++i)
        copy_walk(from + i * dims->from, type, to, at + i * dims->to, dims + 1, rank - 1);
}

/* Lays slice number `slice` out as the boxes of the section say. */
static void copy_boxes(packing *p, int section, const double *data, size_t count, quantise_type type, void *to, size_t elements,
                       size_t slice)
{
    lua_State *L = p->L;
    lua_getfield(L, section, "boxes");
    const int boxes = lua_gettop(L);
    for (lua_Integer i = 1; lua_rawgeti(L, boxes, i) == LUA_TTABLE; ++i) {
        const int box = lua_gettop(L);
        fold_dim dims[FOLD_MAX_DIMS];
        const int rank = fold_field_dims(L, box, where, "to", dims);
        const size_t from_at = field_size(L, box, where, "from"),
                     to_at = field_size(L, box, where, "to") + slice * field_size(L, box, where, "slice_to");
        luaL_argcheck(L, from_at + fold_farthest(dims, rank, true) < count && to_at + fold_farthest(dims, rank, false) < elements, 1,
                      "boxes");
        copy_walk(data + from_at, type, to, to_at, dims, rank);
        lua_settop(L, boxes);
    }
    lua_settop(L, boxes - 1);
}

/* Rounds slice number `slice` to the section's type; a scaled type puts the scales of its rows into another section. Elements of a section
   that has `raised` are so much larger. */
static bool round_slice(packing *p, int section, quantise_type type, double *data, size_t count, size_t slice)
{
    lua_State *L = p->L;
    const bool scaled = quantise_scaled(type);
    const size_t width = scaled ? field_size(L, section, where, "row") : count, rows = count / width;
    const size_t scales = scaled ? field_size(L, section, where, "scales") + slice * rows * sizeof(float) : 0;
    luaL_argcheck(L, !scaled || scales + rows * sizeof(float) <= p->blob_bytes, 1, "scales");
    if (quantise_round(type, data, rows, width, (float *)(void *)(p->blob + scales), &p->tally)) {
        const double raised = (double)field_size(L, section, where, "raised");
        for (size_t i = 0; raised != 0.0 && i < count; ++i)
            data[i] += raised;
        return true;
    }
    return files_error(p->error, sizeof p->error, "%s: tensor %s%s: a folded value is too large for %s", p->path, p->prefix,
                       field_string(L, section, "from"), field_string(L, section, "type"));
}

/* Fills a section with the cosines or sines of rotary positions, [rows][half], a row every `step`
   positions: angle i of a position is position theta^(-i / half). */
static void fill_angles(packing *p, int section, const char *word)
{
    lua_State *L = p->L;
    const size_t half = field_size(L, section, where, "half"), elements = field_size(L, section, where, "elements"),
                 at = field_size(L, section, where, "at");
    const size_t step = field_size(L, section, where, "step");
    const double theta = field_number(L, section, where, "theta");
    luaL_argcheck(L, half && at + elements * sizeof(float) <= p->blob_bytes, 1, "angles");
    float *to = (float *)(void *)(p->blob + at);
    for (size_t i = 0; i < elements; ++i) {
        const double angle = (double)(i / half * step) * pow(theta, -(double)(i % half) / (double)half);
        to[i] = (float)(strcmp(word, "cosines") == 0 ? cos(angle) : sin(angle));
    }
}

/* Positions as sines and cosines: angle i of a position is position max^(-i / steps). */
typedef struct {
    size_t columns, steps;
    double max;
    bool halves; /* all sines and then all cosines, or a sine and a cosine in turn */
} sinusoids;

/* Those that the fields sinusoids = "halves" | "interleaved", columns, steps_of and max of a table describe. */
static sinusoids sinusoids_at(lua_State *L, int table)
{
    const sinusoids s = {.columns = field_size(L, table, where, "columns"),
                         .steps = field_size(L, table, where, "steps_of"),
                         .max = field_number(L, table, where, "max"),
                         .halves = strcmp(field_string(L, table, "sinusoids"), "halves") == 0};
    luaL_argcheck(L, s.columns > 0 && s.columns % 2 == 0 && s.steps > 0, 1, "sinusoids");
    return s;
}

/* Element k of these, [positions][columns]. */
static double sinusoid(const sinusoids *s, size_t k)
{
    const size_t half = s->columns / 2, column = k % s->columns, i = s->halves ? column % half : column / 2;
    const double angle = (double)(k / s->columns) * pow(s->max, -(double)i / (double)s->steps);
    return (s->halves ? column < half : column % 2 == 0) ? sin(angle) : cos(angle);
}

/* Fills a section with sines and cosines of positions, [rows][columns]. */
static void fill_sinusoids(packing *p, int section)
{
    lua_State *L = p->L;
    const size_t elements = field_size(L, section, where, "elements"), at = field_size(L, section, where, "at");
    const sinusoids s = sinusoids_at(L, section);
    luaL_argcheck(L, at + elements * sizeof(float) <= p->blob_bytes, 1, "sinusoids");
    float *to = (float *)(void *)(p->blob + at);
    for (size_t k = 0; k < elements; ++k)
        to[k] = (float)sinusoid(&s, k);
}

/* Fills a section with the bytes on top of the stack. */
static bool copy_text(packing *p, int section)
{
    size_t bytes;
    const char *text = lua_tolstring(p->L, -1, &bytes);
    const size_t at = field_size(p->L, section, where, "at");
    luaL_argcheck(p->L, at + bytes <= p->blob_bytes, 1, "text");
    memcpy(p->blob + at, text, bytes);
    return true;
}

/* Notes under the name of a section the relative error that rounding made in it. */
static void note_error(packing *p, int errors, const char *name, const quantise_tally *tally)
{
    lua_pushnumber(p->L, tally->power > 0.0 ? sqrt(tally->error / tally->power) : 0.0);
    lua_setfield(p->L, errors, name);
}

/* The view in the field `name` of a table, if there is one: v->tensor is NULL without. */
static bool optional_view(packing *p, int table, const char *name, view *v)
{
    lua_State *L = p->L;
    *v = (view){0};
    const bool there = lua_getfield(L, table, name) == LUA_TTABLE;
    const bool ok = !there || view_at(L, lua_gettop(L), "tensor", p->checkpoint, p->prefix, v, p->error, sizeof p->error);
    lua_pop(L, 1);
    return ok;
}

/* What `pack_projected` multiplies rows by, and what it adds: m [outputs][columns] = the weights, times gains of their columns, less the
   mean of each row where rows are taken as differences from theirs; plus [columns], to every row before; bias [outputs], behind. */
typedef struct {
    size_t outputs, columns;
    double *m, *plus, *bias;
} row_projection;

static bool read_view(packing *p, const view *v, double *to)
{
    return !v->tensor || view_read(v, 0, v->rows, to, p->error, sizeof p->error);
}

/* The projection that the table at `job` describes, in memory that Lua frees. */
static bool projection_at(packing *p, int job, row_projection *made)
{
    lua_State *L = p->L;
    view weight, gain, plus, bias;
    if (!optional_view(p, job, "weight", &weight) || !optional_view(p, job, "gain", &gain) || !optional_view(p, job, "plus", &plus))
        return false;
    lua_getfield(L, job, "bias");
    const bool biased = lua_istable(L, -1) && shards_have(p->checkpoint, field_string(L, lua_gettop(L), "tensor"));
    lua_pop(L, 1);
    bias = (view){0};
    if (biased && !optional_view(p, job, "bias", &bias))
        return false;
    const size_t outputs = weight.rows, columns = weight.columns;
    luaL_argcheck(L, !gain.tensor || gain.rows * gain.columns == columns, 1, "gain");
    luaL_argcheck(L, !plus.tensor || plus.columns == columns, 1, "plus");
    luaL_argcheck(L, !bias.tensor || bias.rows * bias.columns == outputs, 1, "bias");
    *made = (row_projection){.outputs = outputs, .columns = columns, .m = lua_newuserdatauv(L, outputs * columns * sizeof(double), 0)};
    double *vectors = lua_newuserdatauv(L, (2 * columns + outputs) * sizeof *vectors, 0), *gains = vectors + columns + outputs;
    made->plus = vectors;
    made->bias = vectors + columns;
    for (size_t i = 0; i < columns + outputs; ++i)
        vectors[i] = 0.0;
    for (size_t i = 0; i < columns; ++i)
        gains[i] = 1.0;
    plus.rows = 1; /* the first row */
    if (!read_view(p, &weight, made->m) || !read_view(p, &gain, gains) || !read_view(p, &plus, made->plus) ||
        !read_view(p, &bias, made->bias))
        return false;
    for (size_t i = 0; plus.tensor && i < columns; ++i)
        made->plus[i] *= field_number(L, job, where, "plus_factor");
    const bool centred = field_flag(L, job, "centred");
    for (size_t o = 0; o < outputs; ++o) {
        double *row = made->m + o * columns, mean = 0.0;
        for (size_t i = 0; i < columns; ++i)
            mean += (row[i] *= gains[i]) / (double)columns;
        for (size_t i = 0; centred && i < columns; ++i)
            row[i] -= mean;
    }
    return true;
}

/* Packs a section whose rows are a projection of other rows: those of a tensor, sines and cosines of positions, or a row of zeros; the
   field `projected` describes it. */
static bool pack_projected(packing *p, int section, int errors)
{
    enum { TOGETHER = 64 }; /* rows */
    lua_State *L = p->L;
    const int job = lua_gettop(L);
    quantise_type type;
    luaL_argcheck(L, quantise_type_named(field_string(L, section, "type"), &type), 1, "type");
    const size_t elements = field_size(L, section, where, "elements"), at = field_size(L, section, where, "at");
    const bool scaled = quantise_scaled(type), sines = lua_getfield(L, job, "sinusoids") == LUA_TSTRING;
    const size_t scales = scaled ? field_size(L, section, where, "scales") : 0;
    const sinusoids s = sines ? sinusoids_at(L, job) : (sinusoids){0};
    view from;
    row_projection by;
    if (!optional_view(p, job, "view", &from) || !projection_at(p, job, &by))
        return false;
    const size_t rows = elements / by.outputs;
    luaL_argcheck(L, at + elements * quantise_bytes(type) <= p->blob_bytes && elements % by.outputs == 0, 1, "at");
    luaL_argcheck(L, !scaled || scales + rows * sizeof(float) <= p->blob_bytes, 1, "scales");
    luaL_argcheck(L, !from.tensor || (from.rows == rows && from.columns == by.columns), 1, "view");
    free(p->data);
    p->data = malloc(TOGETHER * (by.columns + by.outputs) * sizeof *p->data);
    if (!p->data)
        return files_error(p->error, sizeof p->error, "%s: not enough memory", p->path);
    double *in = p->data, *out = in + TOGETHER * by.columns;
    p->tally = (quantise_tally){0};
    for (size_t row = 0, count; row < rows; row += count) {
        count = rows - row < TOGETHER ? rows - row : TOGETHER;
        for (size_t i = 0; i < count * by.columns; ++i)
            in[i] = sines ? sinusoid(&s, row * by.columns + i) : 0.0;
        if (from.tensor && !view_read(&from, row, count, in, p->error, sizeof p->error))
            return false;
        for (size_t i = 0; i < count * by.columns; ++i)
            in[i] += by.plus[i % by.columns];
        for (size_t i = 0; i < count * by.outputs; ++i)
            out[i] = by.bias[i % by.outputs];
        matmul_add(1.0, count, by.outputs, by.columns, (matmul_matrix){in, by.columns, 1}, (matmul_matrix){by.m, 1, by.columns}, out,
                   by.outputs);
        if (!quantise_round(type, out, count, by.outputs, (float *)(void *)(p->blob + scales) + row, &p->tally))
            return files_error(p->error, sizeof p->error, "%s: %s: a folded value is too large for %s", p->path,
                               field_string(L, section, "name"), field_string(L, section, "type"));
        for (size_t i = 0; i < count * by.outputs; ++i)
            quantise_store(type, out[i], p->blob + at, row * by.outputs + i);
    }
    note_error(p, errors, field_string(L, section, "name"), &p->tally);
    return true;
}

/* Packs a section, and notes under its name in the table `errors` the relative error that rounding made in it. */
static bool pack_section(packing *p, int section, int errors)
{
    lua_State *L = p->L;
    if (lua_getfield(L, section, "angles") == LUA_TSTRING)
        fill_angles(p, section, lua_tostring(L, -1));
    const bool angles = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (angles)
        return true;
    if (lua_getfield(L, section, "sinusoids") == LUA_TSTRING) {
        fill_sinusoids(p, section);
        lua_pop(L, 1);
        return true;
    }
    lua_pop(L, 1);
    if (lua_getfield(L, section, "text") == LUA_TSTRING)
        return copy_text(p, section);
    lua_pop(L, 1);
    if (lua_getfield(L, section, "projected") == LUA_TTABLE)
        return pack_projected(p, section, errors);
    lua_pop(L, 1);
    const bool filled_by_another = lua_getfield(L, section, "from") == LUA_TNIL;
    lua_pop(L, 1);
    if (filled_by_another)
        return true;
    quantise_type type;
    luaL_argcheck(L, quantise_type_named(field_string(L, section, "type"), &type), 1, "type");
    const bool optional = (lua_getfield(L, section, "optional"), lua_toboolean(L, -1));
    lua_pop(L, 1);
    if (optional && !shards_have(p->checkpoint, field_string(L, section, "from")))
        return true;
    view v;
    const bool part = field_size(L, section, where, "group") != 0 || field_flag(L, section, "transposed");
    if (part && !view_at(L, section, "from", p->checkpoint, p->prefix, &v, p->error, sizeof p->error))
        return false;
    const safetensors_tensor *tensor = part ? v.tensor : find_tensor(p, section, "from");
    if (!tensor)
        return false;
    const size_t slices = field_size(L, section, where, "slices") ? field_size(L, section, where, "slices") : 1;
    const size_t count = part ? v.rows * v.columns : tensor->count / slices;
    luaL_argcheck(L, !part || slices == 1, 1, "slices");
    const size_t elements = field_size(L, section, where, "elements"), at = field_size(L, section, where, "at");
    const size_t block = field_size(L, section, where, "blocks");
    luaL_argcheck(L, at + elements * quantise_bytes(type) <= p->blob_bytes, 1, "at");
    free(p->data);
    p->data = malloc((count ? count : 1) * sizeof *p->data);
    if (!p->data)
        return files_error(p->error, sizeof p->error, "%s: not enough memory", p->path);
    p->tally = (quantise_tally){0};
    for (size_t slice = 0; slice < slices; ++slice) {
        if (part ? !view_read(&v, 0, v.rows, p->data, p->error, sizeof p->error)
                 : !safetensors_read(p->file, tensor, slice * count, count, p->data, p->error, sizeof p->error))
            return false;
        if (block && p->blocks_in_out)
            fold_transpose_blocks(p->data, count, block);
        if (!run_steps(p, section, p->data, count) || !round_slice(p, section, type, p->data, count, slice))
            return false;
        copy_boxes(p, section, p->data, count, type, p->blob + at, elements, slice);
    }
    note_error(p, errors, field_string(L, section, "name"), &p->tally);
    return true;
}

/* Reads the tensor that the field `name` of a job describes { from, shape, blocks, steps }, `slices` slices of it one after the other from
   `slice` on, and folds it: p->data[*count]. */
static bool read_folded(packing *p, int job, const char *name, size_t slices, size_t slice, size_t *count)
{
    lua_State *L = p->L;
    lua_getfield(L, job, name);
    const int section = lua_gettop(L);
    const safetensors_tensor *tensor = find_tensor(p, section, "from");
    *count = tensor ? tensor->count / slices : 0;
    free(p->data);
    p->data = tensor ? malloc((*count + 1) * sizeof *p->data) : NULL;
    bool ok = p->data != NULL;
    if (tensor && !ok)
        files_error(p->error, sizeof p->error, "%s: not enough memory", p->path);
    ok = ok && safetensors_read(p->file, tensor, slice * *count, *count, p->data, p->error, sizeof p->error);
    if (ok && p->blocks_in_out && field_size(L, section, where, "blocks"))
        fold_transpose_blocks(p->data, *count, field_size(L, section, where, "blocks"));
    ok = ok && run_steps(p, section, p->data, *count);
    lua_settop(L, section - 1);
    return ok;
}

/* The same whole, in memory that Lua frees. */
static double *folded(packing *p, int job, const char *name)
{
    size_t count;
    if (!read_folded(p, job, name, 1, 0, &count))
        return NULL;
    double *copy = lua_newuserdatauv(p->L, (count + 1) * sizeof *copy, 0);
    memcpy(copy, p->data, count * sizeof *copy);
    return copy;
}

/* The place in the blob of the section in the field `name` of `at`; NULL without one. */
static void *packed_at(packing *p, int job, const char *name)
{
    lua_State *L = p->L;
    lua_getfield(L, job, "at");
    const bool there = lua_getfield(L, -1, name) != LUA_TNIL;
    const size_t at = (size_t)lua_tointeger(L, -1);
    lua_pop(L, 2);
    luaL_argcheck(L, at < p->blob_bytes, 1, name);
    return there ? p->blob + at : NULL;
}

/* The list in the field `steps`, in memory that Lua frees. */
static const integer_step *read_steps(lua_State *L, int job, size_t *count)
{
    lua_getfield(L, job, "steps");
    const int list = lua_gettop(L);
    *count = lua_rawlen(L, list);
    integer_step *steps = lua_newuserdatauv(L, (*count + 1) * sizeof *steps, 0);
    for (size_t n = 0; n < *count; ++n) {
        lua_rawgeti(L, list, (lua_Integer)n + 1);
        const int step = lua_gettop(L);
        lua_getfield(L, step, "first");
        lua_getfield(L, step, "last");
        lua_getfield(L, step, "products");
        const size_t products = lua_rawlen(L, step + 3);
        integer_product *product = lua_newuserdatauv(L, (products + 1) * sizeof *product, 0);
        steps[n] = (integer_step){.products = product,
                                  .product_count = products,
                                  .blocks = field_size(L, step, where, "blocks"),
                                  .width = field_size(L, step, where, "width"),
                                  .rows = field_size(L, step, where, "rows"),
                                  .first = lua_toboolean(L, step + 1),
                                  .last = lua_toboolean(L, step + 2),
                                  .z_at = field_size(L, step, where, "z_at"),
                                  .shift_at = field_size(L, step, where, "shift_at")};
        for (size_t k = 0; k < products; ++k) {
            lua_rawgeti(L, step + 3, (lua_Integer)k + 1);
            const int row = lua_gettop(L);
            product[k] = (integer_product){.count = field_size(L, row, where, "count"),
                                           .rows = field_size(L, row, where, "rows"),
                                           .outputs = field_size(L, row, where, "outputs"),
                                           .folds = field_size(L, row, where, "folds"),
                                           .x_at = field_size(L, row, where, "x_at"),
                                           .x_stride = field_size(L, row, where, "x_stride"),
                                           .fold_gap = field_size(L, row, where, "fold_gap"),
                                           .target_at = field_size(L, row, where, "target_at"),
                                           .weight_at = field_size(L, row, where, "weight_at"),
                                           .multiplier_at = field_size(L, row, where, "multiplier_at"),
                                           .from = field_size(L, row, where, "from"),
                                           .block = field_size(L, row, where, "block"),
                                           .fold = field_size(L, row, where, "fold"),
                                           .row = field_size(L, row, where, "row"),
                                           .output = field_size(L, row, where, "output")};
            lua_settop(L, row - 1);
        }
        lua_rawseti(L, list, -(lua_Integer)n - 1); /* kept as long as the list is */
        lua_settop(L, list + 1);
    }
    return steps;
}

/* `error` with the file's name before it. */
static bool integer_error(packing *p, const char *error)
{
    return files_error(p->error, sizeof p->error, "%s: %s", p->path, error);
}

/* The tables of integer kernels: units first, then one table after the other. bounds [h tau]: of |z|. */
static bool pack_integer_tables(packing *p, int job, int errors, const double *bounds)
{
    lua_State *L = p->L;
    const size_t h = field_size(L, job, where, "h"), tau = field_size(L, job, where, "tau"), rows = (size_t)1 << tau;
    double *largest = lua_newuserdatauv(L, h * sizeof *largest, 0), *largest_row = lua_newuserdatauv(L, h * rows * sizeof *largest_row, 0);
    char error[256];
    size_t count;
    lua_getfield(L, job, "along");
    integer_tables tables = {.d_out = field_size(L, job, where, "d_out"),
                             .h = h,
                             .rows = rows,
                             .pitch = field_size(L, job, where, "pitch"),
                             .along = lua_toboolean(L, -1),
                             .shares = field_number(L, job, where, "shares"),
                             .sum_shift = (int)field_size(L, job, where, "sum_shift"),
                             .magnitude_fraction = (int)field_size(L, job, where, "magnitude_fraction"),
                             .fraction = (int)field_size(L, job, where, "fraction"),
                             .largest = largest,
                             .largest_row = largest_row,
                             .bias = folded(p, job, "output_bias"),
                             .packed_bias = packed_at(p, job, "bias")};
    uint8_t *shifts = packed_at(p, job, "shifts");
    tables.score_shift = &shifts[2];
    tables.y_shift = &shifts[3];
    if (!tables.bias)
        return false;
    for (size_t k = 0; k < h; ++k) {
        largest[k] = 0.0;
        for (size_t j = 0; j < tau; ++j)
            largest[k] += fmin(bounds[k * tau + j], ldexp(65536.0, -tables.magnitude_fraction));
        if (!read_folded(p, job, "tables", h, k, &count))
            return false;
        for (size_t i = 0; i < rows; ++i) {
            largest_row[k * rows + i] = 0.0;
            for (size_t o = 0; o < tables.d_out; ++o)
                largest_row[k * rows + i] = fmax(largest_row[k * rows + i], fabs(p->data[i * tables.d_out + o]));
        }
    }
    if (!integer_plan_tables(&tables, error, sizeof error))
        return integer_error(p, error);
    int8_t *packed = packed_at(p, job, "tables");
    uint16_t *scales = packed_at(p, job, "table_scales");
    for (size_t k = 0; k < h; ++k) {
        if (!read_folded(p, job, "tables", h, k, &count))
            return false;
        for (size_t i = 0; i < rows; ++i)
            integer_pack_row(&tables, p->data + i * tables.d_out, largest_row[k * rows + i], packed + (k * rows + i) * tables.pitch,
                             &scales[k * rows + i]);
    }
    note_error(p, errors, "tables", &tables.tally);
    return true;
}

/* Packs the projection and the tables of integer kernels, as gen/families/lookup/integer/plan.lua describes them. */
static bool pack_integer(packing *p, int job, int errors)
{
    lua_State *L = p->L;
    const size_t d = field_size(L, job, where, "d"), bits = field_size(L, job, where, "bits");
    char error[256];
    luaL_checkstack(L, 64, "weights");
    double *residual = NULL, *bounds = lua_newuserdatauv(L, bits * sizeof *bounds, 0);
    const double share = field_number(L, job, where, "residual_share");
    if (lua_getfield(L, job, "residual") == LUA_TTABLE) {
        residual = folded(p, job, "residual");
        if (!residual)
            return false;
    } else if (share > 0.0) {
        residual = lua_newuserdatauv(L, d * sizeof *residual, 0);
        for (size_t i = 0; i < d; ++i)
            residual[i] = share;
    }
    uint8_t *shifts = packed_at(p, job, "shifts");
    integer_projection projection = {.d = d,
                                     .bits = bits,
                                     .padded = field_size(L, job, where, "padded"),
                                     .max_weight = (int)field_size(L, job, where, "max_weight"),
                                     .element = field_size(L, job, where, "max_weight") > 127 ? 2 : 1,
                                     .unit = field_number(L, job, where, "unit"),
                                     .length = field_number(L, job, where, "length"),
                                     .magnitude_unit = ldexp(1.0, -(int)field_size(L, job, where, "magnitude_fraction")),
                                     .weights = folded(p, job, "projection"),
                                     .residual = residual,
                                     .packed = packed_at(p, job, "projection"),
                                     .multipliers = packed_at(p, job, "multipliers"),
                                     .packed_residual = packed_at(p, job, "residual"),
                                     .packed_bias = packed_at(p, job, "projection_bias"),
                                     .shifts = shifts,
                                     .z_shift = &shifts[0],
                                     .residual_shift = &shifts[1],
                                     .largest = bounds};
    projection.steps = read_steps(L, job, &projection.step_count);
    projection.bias = projection.weights ? folded(p, job, "bias") : NULL;
    if (!projection.bias)
        return false;
    if (!integer_pack_projection(&projection, error, sizeof error))
        return integer_error(p, error);
    note_error(p, errors, "projection", &projection.tally);
    return pack_integer_tables(p, job, errors, bounds);
}

/* x[rows][d] <- each row without its mean, its variance 1: LayerNorm without gain and offset. */
static void normalise(float *x, size_t rows, size_t d, double eps)
{
    for (size_t row = 0; row < rows; ++row, x += d) {
        double mean = 0.0, variance = 0.0;
        for (size_t i = 0; i < d; ++i)
            mean += (double)x[i] / (double)d;
        for (size_t i = 0; i < d; ++i)
            variance += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)d;
        for (size_t i = 0; i < d; ++i)
            x[i] = (float)(((double)x[i] - mean) / sqrt(variance + eps));
    }
}

/* The rows that the table at `job` names, d columns, as its projection sees them; NULL with a message. */
static float *read_calibration_rows(packing *p, int job, size_t d, size_t *rows)
{
    const char *const path = field_string(p->L, job, "x");
    float *const x = npy_read_tokens(path, d, rows, p->error, sizeof p->error);
    bool good = x != NULL;
    if (good && *rows < CALIBRATE_LEAST_ROWS)
        good = files_error(p->error, sizeof p->error, "%s: %zu rows: calibration takes at least %d", path, *rows, CALIBRATE_LEAST_ROWS);
    for (size_t i = 0; good && i < *rows * d; ++i)
        if (!isfinite(x[i]))
            good = files_error(p->error, sizeof p->error, "%s: row %zu: has a value that is no number", path, i / d + 1);
    if (!good) {
        free(x);
        return NULL;
    }
    const double eps = field_number(p->L, job, where, "norm_eps");
    if (eps > 0.0)
        normalise(x, *rows, d, eps);
    return x;
}

/* Packs the projection that the table at `job` describes (gen/families/lookup/sections.lua) once more, calibrated, and appends what came of
   it to the table at `list`. All other sections are packed. */
static bool pack_calibrated(packing *p, int job, int errors, int list)
{
    lua_State *L = p->L;
    calibration c = {.shape = {field_size(L, job, where, "d"), field_size(L, job, where, "bits"), field_size(L, job, where, "block"),
                               field_size(L, job, where, "padded"), field_size(L, job, where, "repeats"), 1.0},
                     .tau = field_size(L, job, where, "tau")};
    size_t count;
    double *const residual = lua_newuserdatauv(L, c.shape.d * sizeof *residual, 0);
    const float *const gains =
        field_size(L, job, where, "residual_at") ? (const void *)(p->blob + field_size(L, job, where, "residual_at")) : NULL;
    for (size_t i = 0; i < c.shape.d; ++i)
        residual[i] = gains != NULL ? (double)gains[i] : field_number(L, job, where, "residual");
    float *const x = read_calibration_rows(p, job, c.shape.d, &c.rows);
    if (x == NULL || !read_folded(p, job, "projection", 1, 0, &count)) {
        free(x);
        return false;
    }
    lua_getfield(L, job, "projection");
    const int section = lua_gettop(L);
    c.x = x;
    c.residual = residual;
    c.bias = (const void *)(p->blob + field_size(L, job, where, "bias_at"));
    c.weights = p->data;
    c.scales = (float *)(void *)(p->blob + field_size(L, section, where, "scales"));
    luaL_argcheck(L, quantise_type_named(field_string(L, section, "type"), &c.type), 1, "type");
    const bool good = calibrate(&c);
    free(x);
    if (!good)
        return files_error(p->error, sizeof p->error, "%s: not enough memory for %zu rows", field_string(L, job, "x"), c.rows);
    for (size_t i = 0; i < count; ++i)
        p->data[i] += (double)field_size(L, section, where, "raised");
    copy_boxes(p, section, p->data, count, c.type, p->blob + field_size(L, section, where, "at"), field_size(L, section, where, "elements"),
               0);
    note_error(p, errors, field_string(L, section, "name"), &(quantise_tally){c.error, c.power});
    lua_newtable(L);
    const struct {
        const char *name;
        double value;
    } results[] = {{"rows", (double)c.held},
                   {"nearest_flips", (double)c.nearest_flips / (double)c.codes},
                   {"flips", (double)c.flips / (double)c.codes},
                   {"nearest_z_error", c.nearest_z_error},
                   {"z_error", c.z_error}};
    for (size_t i = 0; i < sizeof results / sizeof *results; ++i) {
        lua_pushnumber(L, results[i].value);
        lua_setfield(L, -2, results[i].name);
    }
    lua_rawseti(L, list, (lua_Integer)lua_rawlen(L, list) + 1);
    return true;
}

static void write_header(packing *p, int job)
{
    lua_State *L = p->L;
    const blob_header header = {.magic = field_string(L, job, "magic"),
                                .digest = field_string(L, job, "digest"),
                                .format = field_size(L, job, where, "format"),
                                .bytes = field_size(L, job, where, "header_bytes")};
    blob_header_write(&header, p->blob, p->blob_bytes);
}

/* Pushes the name that the field `name` of a table has in the checkpoint. */
static const char *push_full_name(packing *p, int table)
{
    return lua_pushfstring(p->L, "%s%s", p->prefix, field_string(p->L, table, "name"));
}

/* Appends to the message which tensors of the job are missing beside `first`. */
static void add_missing(packing *p, int job, const char *first)
{
    enum { MOST_NAMED = 4, LONGEST_SHOWN = 200 };
    lua_State *L = p->L;
    const int top = lua_gettop(L);
    const char *named[MOST_NAMED];
    size_t count = 0;
    lua_getfield(L, job, "tensors");
    lua_newtable(L); /* keeps the names */
    for (lua_Integer i = 1; lua_rawgeti(L, top + 1, i) == LUA_TTABLE; ++i) {
        const char *full = push_full_name(p, top + 3);
        if (strcmp(full, first) != 0 && !shards_have(p->checkpoint, full)) {
            if (count < MOST_NAMED)
                named[count] = full;
            ++count;
        }
        lua_rawseti(L, top + 2, i);
        lua_settop(L, top + 2);
    }
    for (size_t i = 0; i < count && i < MOST_NAMED; ++i) {
        const size_t length = strlen(p->error);
        snprintf(p->error + length, sizeof p->error - length, "%s%.*s",
                 i > 0        ? ", "
                 : count == 1 ? "; so is "
                              : "; so are ",
                 LONGEST_SHOWN, named[i]);
    }
    if (count > MOST_NAMED) {
        const size_t length = strlen(p->error);
        snprintf(p->error + length, sizeof p->error - length, " and %zu more", count - MOST_NAMED);
    }
    lua_settop(L, top);
}

/* Says that the tensor `full`, whose `name` stands behind the prefix, is missing, and which one may be meant: none of those whose names are
   keys of the table `used`. */
static bool fail_missing(packing *p, int job, int used, const char *full, const char *name)
{
    lua_State *L = p->L;
    nearest search = {.wanted = full};
    for (size_t i = 0; i < shards_count(p->checkpoint); ++i) {
        const safetensors *file = shards_at(p->checkpoint, i);
        for (size_t k = 0; k < safetensors_count(file); ++k) {
            const char *offered = safetensors_at(file, k)->name;
            if (lua_getfield(L, used, offered) == LUA_TNIL)
                nearest_offer(&search, offered);
            lua_pop(L, 1);
        }
    }
    const size_t found = search.name == NULL ? 0 : strlen(search.name), tail = strlen(name);
    if (found > tail && search.name[found - tail - 1] == '.' && strcmp(search.name + found - tail, name) == 0 &&
        field_flag(L, job, "takes_prefix"))
        return files_error(p->error, sizeof p->error, "%s: tensor %s is missing; give --prefix %.*s", shards_path(p->checkpoint), full,
                           (int)(found - tail), search.name);
    nearest_missing(&search, shards_path(p->checkpoint), p->error, sizeof p->error);
    add_missing(p, job, full);
    return false;
}

/* Checks the tensor that the table at `tensor` describes. */
static bool check_tensor(packing *p, int job, int used, int tensor)
{
    lua_State *L = p->L;
    const char *full = push_full_name(p, tensor);
    const bool there = shards_have(p->checkpoint, full);
    if (!there && strlen(full) < LONGEST_NAME)
        return fail_missing(p, job, used, full, field_string(L, tensor, "name"));
    if (find_tensor(p, tensor, "name") != NULL)
        return true;
    const char *dims = field_text(L, tensor, where, "dims", "");
    const size_t length = strlen(p->error);
    if (there && *dims != '\0') /* it has another shape */
        snprintf(p->error + length, sizeof p->error - length, ", that is %s", dims);
    return false;
}

/* Every tensor the model needs, also those that only steps read, must be there with its shape. */
static bool check_tensors(packing *p, int job)
{
    lua_State *L = p->L;
    lua_getfield(L, job, "tensors");
    const int tensors = lua_gettop(L);
    lua_newtable(L);
    const int used = lua_gettop(L);
    for (lua_Integer i = 1; lua_rawgeti(L, tensors, i) == LUA_TTABLE; ++i) {
        push_full_name(p, used + 1);
        lua_pushboolean(L, true);
        lua_rawset(L, used);
        lua_settop(L, used);
    }
    lua_settop(L, used);
    bool ok = true;
    for (lua_Integer i = 1; ok && lua_rawgeti(L, tensors, i) == LUA_TTABLE; ++i) {
        ok = check_tensor(p, job, used, lua_gettop(L));
        lua_settop(L, used);
    }
    lua_settop(L, tensors - 1);
    return ok;
}

/* The packing that the job at 1 describes, with nothing done yet. */
static packing packing_of(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    packing p = {.L = L, .path = field_text(L, 1, where, "weights", ""), .prefix = field_string(L, 1, "prefix")};
    if (*p.path == '\0')
        p.path = NULL;
    lua_getfield(L, 1, "blocks_in_out");
    p.blocks_in_out = lua_toboolean(L, -1);
    return p;
}

static bool open_checked(packing *p, int job)
{
    p->checkpoint = shards_open(p->path, p->error, sizeof p->error);
    return p->checkpoint && check_tensors(p, job);
}

/* weights.check(job) -> true | nil, message: whether weights.pack would find its tensors. */
static int weights_check(lua_State *L)
{
    packing p = packing_of(L);
    const bool ok = open_checked(&p, 1);
    shards_close(p.checkpoint);
    if (!ok)
        return host_fail(L, p.error);
    lua_pushboolean(L, 1);
    return 1;
}

static bool pack_all(packing *p, int job, int errors)
{
    lua_State *L = p->L;
    if (p->path && !open_checked(p, job))
        return false;
    p->blob_bytes = field_size(L, job, where, "bytes");
    p->blob = calloc(1, p->blob_bytes);
    if (!p->blob)
        return files_error(p->error, sizeof p->error, "%s: not enough memory for %zu bytes", field_string(L, job, "output"), p->blob_bytes);
    lua_getfield(L, job, "sections");
    const int sections = lua_gettop(L);
    for (lua_Integer i = 1; lua_rawgeti(L, sections, i) == LUA_TTABLE; ++i) {
        const bool ok = pack_section(p, lua_gettop(L), errors);
        lua_settop(L, sections);
        if (!ok)
            return false;
    }
    lua_settop(L, sections - 1);
    if (lua_getfield(L, job, "integer") == LUA_TTABLE && !pack_integer(p, lua_gettop(L), errors))
        return false;
    lua_settop(L, sections - 1);
    if (lua_getfield(L, job, "calibrations") == LUA_TTABLE) {
        const int list = lua_gettop(L);
        lua_newtable(L);
        for (lua_Integer i = 1; lua_rawgeti(L, list, i) == LUA_TTABLE; ++i) {
            if (!pack_calibrated(p, lua_gettop(L), errors, list + 1))
                return false;
            lua_settop(L, list + 1);
        }
        lua_settop(L, list + 1);
        lua_setfield(L, errors, "calibrations");
    }
    lua_settop(L, sections - 1);
    write_header(p, job);

    files_output output = {.path = field_string(L, job, "output"), .bytes = (const char *)p->blob, .size = p->blob_bytes};
    const bool good = files_write(&output, 1, p->error, sizeof p->error);
    p->changed = output.changed;
    return good;
}

/* weights.pack(job) -> { section = relative error that rounding made in it }, whether the file is another one than before | nil, message.
   The job is blob.packing's of gen/plan/blob.lua: weights (absent: no section comes from a checkpoint), output, prefix, blocks_in_out,
   tensors, sections, integer, calibrations, bytes, header_bytes, magic, format, digest. A section with a `text` is those bytes. Of a job
   with calibrations the table has the key calibrations, too, a list: what came of each on so many `rows` that were held back, flips as
   shares of their codes, with the names of calibrate.h. */
static int weights_pack(lua_State *L)
{
    packing p = packing_of(L);
    lua_newtable(L);
    const int errors = lua_gettop(L);
    const bool ok = pack_all(&p, 1, errors);
    shards_close(p.checkpoint);
    free(p.blob);
    free(p.data);
    free(p.vector);
    free(p.raw);
    if (!ok)
        return host_fail(L, p.error);
    lua_settop(L, errors);
    lua_pushboolean(L, p.changed);
    return 2;
}

/* Appends count values, with room for RANDOM_VALUES in values. */
static bool append_random(safetensors_writer *writer, lua_State *L, int tensor, size_t count, random_state *random, float *values,
                          char *error)
{
    const double mean = field_number(L, tensor, where, "mean"), deviation = field_number(L, tensor, where, "deviation");
    const size_t zero_every = field_size(L, tensor, where, "zero_every"), columns = field_size(L, tensor, where, "diagonal");
    const size_t group = field_size(L, tensor, where, "group"), stride = field_size(L, tensor, where, "stride");
    const size_t width = field_size(L, tensor, where, "transposed");
    for (size_t done = 0; done < count;) {
        const size_t n = count - done < RANDOM_VALUES ? count - done : RANDOM_VALUES;
        random_fill(random, values, n, mean, deviation);
        for (size_t i = 0; zero_every && i < n; ++i)
            if ((done + i) % zero_every == 0)
                values[i] = 0;
        for (size_t i = 0; columns && i < n; ++i) {
            const size_t at = done + i, row = width ? at % width : at / columns, column = width ? at / width : at % columns;
            const size_t own = stride ? row / stride * group + row % group : row;
            if (column == own % columns)
                values[i] += 1.0f;
        }
        if (!safetensors_append(writer, values, n * sizeof *values, error, ERROR_SIZE))
            return false;
        done += n;
    }
    return true;
}

/* weights.sample(path, prefix, tensors, seed) -> true | nil, message; tensors = { { name, shape, mean, deviation, zero_every,
   diagonal, group, stride, transposed } }: with diagonal = d, ones are added along the diagonal of a matrix of d columns, or of its groups
   of rows; transposed: how many rows there are in all of a matrix that is stored [d][rows]. */
static int weights_sample(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1), *prefix = luaL_checkstring(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    random_state random = random_seed((uint64_t)luaL_checkinteger(L, 4));
    char error[ERROR_SIZE];
    const size_t count = lua_rawlen(L, 3);
    safetensors_description *descriptions = lua_newuserdatauv(L, (count + 1) * sizeof *descriptions, 0);
    size_t *counts = lua_newuserdatauv(L, (count + 1) * sizeof *counts, 0);
    float *values = lua_newuserdatauv(L, RANDOM_VALUES * sizeof *values, 0);
    lua_createtable(L, (int)count, 0); /* keeps the names */
    const int top = lua_gettop(L);
    for (size_t i = 0; i < count; ++i) {
        lua_rawgeti(L, 3, (lua_Integer)i + 1);
        const int tensor = lua_gettop(L);
        const char *name = lua_pushfstring(L, "%s%s", prefix, field_string(L, tensor, "name"));
        lua_rawseti(L, top, (lua_Integer)i + 1);
        descriptions[i] = (safetensors_description){.name = name, .dtype = DTYPE_F32};
        descriptions[i].rank = field_dimensions(L, tensor, "shape", descriptions[i].shape, SAFETENSORS_MAX_RANK);
        counts[i] = 1;
        for (int k = 0; k < descriptions[i].rank; ++k)
            counts[i] *= (size_t)descriptions[i].shape[k];
        lua_settop(L, top);
    }
    safetensors_writer *writer = safetensors_create(path, descriptions, count, error, sizeof error);
    if (!writer)
        return host_fail(L, error);
    for (size_t i = 0; i < count; ++i) {
        lua_rawgeti(L, 3, (lua_Integer)i + 1);
        if (!append_random(writer, L, lua_gettop(L), counts[i], &random, values, error)) {
            safetensors_abandon(writer);
            return host_fail(L, error);
        }
        lua_settop(L, top);
    }
    if (!safetensors_finish(writer, error, sizeof error))
        return host_fail(L, error);
    lua_pushboolean(L, true);
    return 1;
}

/* weights.tensors(path) -> { name = { dtype, shape } } | nil, message */
static int weights_tensors(lua_State *L)
{
    char error[ERROR_SIZE];
    shards *in = shards_open(luaL_checkstring(L, 1), error, sizeof error);
    if (in == NULL)
        return host_fail(L, error);
    lua_newtable(L);
    const int tensors = lua_gettop(L);
    for (size_t i = 0; i < shards_count(in); ++i) {
        const safetensors *file = shards_at(in, i);
        for (size_t k = 0; k < safetensors_count(file); ++k) {
            const safetensors_tensor *tensor = safetensors_at(file, k);
            lua_newtable(L);
            lua_pushstring(L, tensor->dtype_name);
            lua_setfield(L, -2, "dtype");
            lua_createtable(L, tensor->rank, 0);
            for (int d = 0; d < tensor->rank; ++d) {
                lua_pushinteger(L, tensor->shape[d]);
                lua_rawseti(L, -2, d + 1);
            }
            lua_setfield(L, -2, "shape");
            lua_setfield(L, tensors, tensor->name);
        }
    }
    shards_close(in);
    return 1;
}

/* Whether two tensors have the same shape and values: 1 or 0; -1 with a message. */
static int same_values(const shards *in, const char *const names[2], char *error)
{
    enum { MOST = 256 };
    const safetensors *files[2];
    const safetensors_tensor *tensors[2];
    double values[2][MOST];
    for (int i = 0; i < 2; ++i) {
        tensors[i] = shards_expect(in, "", names[i], NULL, 0, &files[i], error, ERROR_SIZE);
        if (!tensors[i])
            return -1;
    }
    const size_t count = tensors[0]->count;
    bool same = tensors[0]->rank == tensors[1]->rank;
    for (int i = 0; same && i < tensors[0]->rank; ++i)
        same = tensors[0]->shape[i] == tensors[1]->shape[i];
    for (size_t done = 0; same && done < count; done += MOST) {
        const size_t some = count - done < MOST ? count - done : MOST;
        for (int i = 0; i < 2; ++i)
            if (!safetensors_read(files[i], tensors[i], done, some, values[i], error, ERROR_SIZE))
                return -1;
        for (size_t i = 0; same && i < some; ++i)
            same = values[0][i] == values[1][i];
    }
    return same;
}

/* weights.differing(path, pairs) -> the number of the first pair of names whose tensors have other shapes or values, or false | nil,
   message. */
static int weights_differing(lua_State *L)
{
    char error[ERROR_SIZE];
    const char *path = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    shards *in = shards_open(path, error, sizeof error);
    if (in == NULL)
        return host_fail(L, error);
    int same = 1;
    lua_Integer pair = 0;
    while (same == 1 && lua_rawgeti(L, 2, ++pair) == LUA_TTABLE) {
        lua_rawgeti(L, 3, 1);
        lua_rawgeti(L, 3, 2);
        const char *names[2] = {lua_tostring(L, 4), lua_tostring(L, 5)};
        same = same_values(in, names, error);
        lua_settop(L, 2);
    }
    shards_close(in);
    if (same < 0)
        return host_fail(L, error);
    lua_settop(L, 0);
    if (same == 1)
        lua_pushboolean(L, false);
    else
        lua_pushinteger(L, pair);
    return 1;
}

/* weights.quantise(path, output) -> relative error of what was rounded | nil, message: the checkpoint with matrices and tables in I8. */
static int weights_quantise(lua_State *L)
{
    char error[ERROR_SIZE];
    double share = 0.0;
    shards *in = shards_open(luaL_checkstring(L, 1), error, sizeof error);
    const bool good = in != NULL && rounded_write(in, luaL_checkstring(L, 2), &share, error, sizeof error);
    shards_close(in);
    if (!good)
        return host_fail(L, error);
    lua_pushnumber(L, share);
    return 1;
}

int luaopen_weights(lua_State *L)
{
    static const luaL_Reg functions[] = {{"pack", weights_pack},
                                         {"check", weights_check},
                                         {"sample", weights_sample},
                                         {"tensors", weights_tensors},
                                         {"differing", weights_differing},
                                         {"quantise", weights_quantise},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    lua_pushinteger(L, CALIBRATE_LEAST_ROWS);
    lua_setfield(L, -2, "least_calibration_rows");
    return 1;
}
