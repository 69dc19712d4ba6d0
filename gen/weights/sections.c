/* Packs the sections of a blob. It knows no shape of its own: the plan's list says what lies where, from which tensor, folded how. */
#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/weights/fold.h"
#include "gen/weights/fold_fields.h"
#include "gen/weights/gguf_blocks.h"
#include "gen/weights/packing.h"
#include "gen/weights/random.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "weights: ";

const safetensors_tensor *packing_tensor(packing *p, int table, const char *name)
{
    int64_t shape[SAFETENSORS_MAX_RANK];
    const int rank = field_dimensions(p->L, table, "shape", shape, SAFETENSORS_MAX_RANK);
    const shards_wanted wanted = {p->prefix, field_text(p->L, table, where, name, NULL), shape, rank};
    return shards_expect(p->checkpoint, wanted, &p->file, p->error, sizeof p->error);
}

/* All elements of the tensor `name`, from malloc; NULL with a message. */
static double *load_tensor(packing *p, const char *name, size_t *count)
{
    const safetensors *file;
    const safetensors_tensor *tensor =
        shards_expect(p->checkpoint, (shards_wanted){p->prefix, name, NULL, 0}, &file, p->error, sizeof p->error);
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

/* The projection that the fields of a step describe. */
static fold_projection projection_at(lua_State *L, int step)
{
    return (fold_projection){field_size(L, step, where, "d"),       field_size(L, step, where, "bits"),
                             field_size(L, step, where, "block"),   field_size(L, step, where, "padded"),
                             field_size(L, step, where, "repeats"), field_number(L, step, where, "decay")};
}

/* data[count] += the projection of the vector p->vector: used for LayerNorm's offset. */
static bool add_projection(packing *p, int step, double *data)
{
    const fold_projection shape = projection_at(p->L, step);
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

/* p->data[*count] <- the matrix of the BH4 projection that it holds. */
static bool multiply_out(packing *p, int step, size_t *count)
{
    const fold_projection shape = projection_at(p->L, step);
    luaL_argcheck(p->L, *count == 4 * shape.repeats * shape.padded * shape.block, 1, "multiply_out");
    double *made = malloc(shape.bits * shape.d * sizeof *made);
    if (!made || fold_multiply_out(&shape, p->data, made) != 0) {
        free(made);
        return files_error(p->error, sizeof p->error, "%s: not enough memory", p->path);
    }
    free(p->data);
    p->data = made;
    *count = shape.bits * shape.d;
    return true;
}

/* Runs the steps in the field `steps` of the section over p->data[*elements]. */
static bool run_steps(packing *p, int section, size_t *elements)
{
    lua_State *L = p->L;
    lua_getfield(L, section, "steps");
    const int steps = lua_gettop(L);
    bool ok = true;
    for (lua_Integer i = 1; ok && lua_rawgeti(L, steps, i) == LUA_TTABLE; ++i) {
        const int step = lua_gettop(L);
        const char *name = field_text(L, step, where, "step", NULL);
        double *const data = p->data;
        const size_t count = *elements;
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
            ok = read_vector(p, field_text(L, step, where, "tensor", NULL));
            if (ok)
                fold_scale(data + at, dims, rank, 0, p->vector + field_size(L, step, where, "by_at"));
        } else if (strcmp(name, "add_projection_of") == 0) {
            ok = read_vector(p, field_text(L, step, where, "tensor", NULL)) && add_projection(p, step, data);
        } else if (strcmp(name, "multiply_out") == 0) {
            ok = multiply_out(p, step, elements);
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

void packing_boxes(packing *p, int section, size_t count, quantise_type type, size_t slice)
{
    lua_State *L = p->L;
    const size_t elements = field_size(L, section, where, "elements");
    void *to = p->blob + field_size(L, section, where, "at");
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
        copy_walk(p->data + from_at, type, to, to_at, dims, rank);
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
    float *const scale = (float *)(void *)(p->blob + scales);
    if (quantise_round(type, data, rows, width, scale, &p->tally)) {
        lua_getfield(L, section, "times");
        const double times = luaL_optnumber(L, -1, 1.0);
        lua_pop(L, 1);
        for (size_t i = 0; scaled && times != 1.0 && i < rows; ++i)
            scale[i] = (float)(times * (double)scale[i]);
        const double raised = (double)field_size(L, section, where, "raised");
        for (size_t i = 0; raised != 0.0 && i < count; ++i)
            data[i] += raised;
        return true;
    }
    return files_error(p->error, sizeof p->error, "%s: tensor %s%s: a folded value is too large for %s", p->path, p->prefix,
                       field_text(L, section, where, "from", NULL), field_text(L, section, where, "type", NULL));
}

/* Fills a section with the cosines or sines of rotary positions, times a factor, [rows][pairs], a row every `step` positions: angle i of a
   position is position times frequency i. */
static bool fill_angles(packing *p, int section, int errors)
{
    (void)errors;
    lua_State *L = p->L;
    const bool cosines = strcmp(lua_tostring(L, -1), "cosines") == 0;
    const size_t elements = field_size(L, section, where, "elements"), at = field_size(L, section, where, "at"),
                 step = field_size(L, section, where, "step");
    const double factor = field_number(L, section, where, "factor");
    lua_getfield(L, section, "frequencies");
    const size_t pairs = (size_t)luaL_len(L, -1);
    luaL_argcheck(L, pairs && at + elements * sizeof(float) <= p->blob_bytes, 1, "angles");
    float *to = (float *)(void *)(p->blob + at);
    for (size_t i = 0; i < pairs; ++i, lua_pop(L, 1)) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        const double frequency = luaL_checknumber(L, -1);
        for (size_t k = i; k < elements; k += pairs) {
            const double angle = (double)(k / pairs * step) * frequency;
            to[k] = (float)(factor * (cosines ? cos(angle) : sin(angle)));
        }
    }
    lua_pop(L, 1);
    return true;
}

/* Fills a section with the bytes on top of the stack. */
static bool copy_text(packing *p, int section, int errors)
{
    (void)errors;
    size_t bytes;
    const char *text = lua_tolstring(p->L, -1, &bytes);
    const size_t at = field_size(p->L, section, where, "at");
    luaL_argcheck(p->L, at + bytes <= p->blob_bytes, 1, "text");
    memcpy(p->blob + at, text, bytes);
    return true;
}

void packing_note_error(packing *p, int errors, const char *name, const quantise_tally *tally)
{
    lua_pushnumber(p->L, tally->power > 0.0 ? sqrt(tally->error / tally->power) : 0.0);
    lua_setfield(p->L, errors, name);
}

/* Reads what the section is filled from, a tensor or a part of one, of `slices` slices number `slice`, and folds it: p->data[*count]. */
static bool read_slice(packing *p, int section, size_t slices, size_t slice, size_t *count)
{
    lua_State *L = p->L;
    view v = {.columns = field_size(L, section, where, "row"), .group = SIZE_MAX}; /* a whole tensor */
    const bool part = field_size(L, section, where, "group") != 0 || field_flag(L, section, "transposed");
    luaL_argcheck(L, !part || slices == 1, 1, "slices");
    if (part && !view_at(L, section, "from", (view_source){p->checkpoint, p->prefix}, &v, p->error, sizeof p->error))
        return false;
    const safetensors_tensor *tensor = part ? v.tensor : packing_tensor(p, section, "from");
    if (!tensor)
        return false;
    if (!part) {
        v.file = p->file;
        v.tensor = tensor;
    }
    p->from = v;
    *count = part ? v.rows * v.columns : tensor->count / slices;
    free(p->data);
    p->data = malloc((*count + 1) * sizeof *p->data);
    if (!p->data)
        return files_error(p->error, sizeof p->error, "%s: not enough memory", p->path);
    if (part ? !view_read(&v, 0, v.rows, p->data, p->error, sizeof p->error)
             : !safetensors_read(p->file, tensor, slice * *count, *count, p->data, p->error, sizeof p->error))
        return false;
    const size_t block = field_size(L, section, where, "blocks");
    if (block && p->blocks_in_out)
        fold_transpose_blocks(p->data, *count, block);
    return run_steps(p, section, count);
}

/* Whether the groups of a section are the blocks of the GGUF file that it was read from. */
static bool keeps_blocks(const packing *p, int section)
{
    const char *const blocks = safetensors_blocks_name(p->from.tensor);
    return blocks && !p->from.transposed && strcmp(blocks, field_text(p->L, section, where, "kept", "")) == 0;
}

/* A row's blocks as the file has them, in p->raw. */
static bool read_blocks(packing *p, size_t row)
{
    const size_t width = p->from.columns;
    free(p->raw);
    p->raw = malloc((width + QUANTISE_GROUP - 1) / QUANTISE_GROUP * p->from.tensor->blocks->bytes);
    if (!p->raw)
        return files_error(p->error, sizeof p->error, "%s: not enough memory", p->path);
    return safetensors_read_blocks(p->from.file, p->from.tensor, view_row(&p->from, row) * width, width, (unsigned char *)p->raw, p->error,
                                   sizeof p->error);
}

/* Packs slice number `slice` of a matrix, p->data[count], whose rows have scales for groups of inputs: a panel after the other, as
   gen/families/model/blocks/layout.lua lays it out. */
static bool pack_groups(packing *p, int section, size_t count, size_t slice)
{
    lua_State *L = p->L;
    const bool minimum = field_flag(L, section, "minimum");
    const size_t bits = field_size(L, section, where, "bits"), word = 32 / bits;
    const size_t panel = field_size(L, section, where, "panel"), scales = minimum ? panel : panel / 2,
                 words = scales + panel * QUANTISE_GROUP / word;
    const int offset = minimum ? 0 : 1 << (bits - 1);
    const size_t width = field_size(L, section, where, "row"), groups = (width + QUANTISE_GROUP - 1) / QUANTISE_GROUP;
    const size_t rows = count / width, elements = field_size(L, section, where, "elements");
    uint32_t *const to = (uint32_t *)(void *)(p->blob + field_size(L, section, where, "at"));
    luaL_argcheck(L, ((slice * rows + rows + panel - 1) / panel) * groups * words <= elements, 1, "groups");
    const bool kept = keeps_blocks(p, section);
    for (size_t r = 0; r < rows; ++r) {
        const size_t output = slice * rows + r;
        if (kept && !read_blocks(p, output))
            return false;
        for (size_t g = 0; g < groups; ++g) {
            const double *const data = p->data + r * width + g * QUANTISE_GROUP;
            const size_t some = width - g * QUANTISE_GROUP < QUANTISE_GROUP ? width - g * QUANTISE_GROUP : QUANTISE_GROUP;
            uint32_t *const group = to + (output / panel * groups + g) * words;
            uint16_t *const scale = (uint16_t *)group + output % panel;
            double units[QUANTISE_GROUP];
            memcpy(units, data, some * sizeof *units);
            if (kept)
                gguf_blocks_units(p->from.tensor->blocks, (unsigned char *)p->raw + g * p->from.tensor->blocks->bytes, units, scale,
                                  scale + panel);
            else if (!quantise_group(units, some, (int)bits, scale, minimum ? scale + panel : NULL, &p->tally))
                return files_error(p->error, sizeof p->error, "%s: tensor %s%s: a value is too large for %s", p->path, p->prefix,
                                   field_text(L, section, where, "from", NULL), field_text(L, section, where, "form", NULL));
            /* Inputs 0 to 3 of a word are in the low bits of its bytes, 4 to 7 in the high ones; those that fill it up are zeros. */
            for (size_t i = 0; i < QUANTISE_GROUP; ++i)
                group[scales + i / word * panel + output % panel] |= (uint32_t)((i < some ? (int)units[i] : 0) + offset)
                                                                     << (i % 4 * 8 + i % word / 4 * 4);
        }
    }
    return true;
}

/* A section that a tensor fills, or a part of one. */
static bool pack_tensor(packing *p, int section, int errors)
{
    lua_State *L = p->L;
    quantise_type type = QUANTISE_F32;
    const bool grouped = field_size(L, section, where, "groups") != 0;
    luaL_argcheck(L, grouped || quantise_type_named(field_text(L, section, where, "type", NULL), &type), 1, "type");
    if (field_flag(L, section, "optional") && !shards_have(p->checkpoint, field_text(L, section, where, "from", NULL)))
        return true;
    const size_t given = field_size(L, section, where, "slices"), slices = given ? given : 1;
    const size_t elements = field_size(L, section, where, "elements"), at = field_size(L, section, where, "at");
    luaL_argcheck(L, at + quantise_size(type, elements) <= p->blob_bytes, 1, "at");
    p->tally = (quantise_tally){0};
    for (size_t slice = 0, count; slice < slices; ++slice) {
        if (!read_slice(p, section, slices, slice, &count))
            return false;
        if (grouped) {
            if (!pack_groups(p, section, count, slice))
                return false;
            continue;
        }
        if (!round_slice(p, section, type, p->data, count, slice))
            return false;
        packing_boxes(p, section, count, type, slice);
    }
    const double levels = quantise_levels((int)field_size(L, section, where, "bits"), field_flag(L, section, "minimum"));
    if (grouped && quantise_too_small(&p->tally, levels))
        return files_error(p->error, sizeof p->error, "%s: tensor %s%s: values are too small for %s", p->path, p->prefix,
                           field_text(L, section, where, "from", NULL), field_text(L, section, where, "form", NULL));
    packing_note_error(p, errors, field_text(L, section, where, "name", NULL), &p->tally);
    return true;
}

/* A section of signs: those of the tensor, each 1 or -1, or, where the checkpoint has none, of the random bits of the seed on top of the
   stack. */
static bool fill_signs(packing *p, int section, int errors)
{
    lua_State *L = p->L;
    const size_t elements = field_size(L, section, where, "elements"), at = field_size(L, section, where, "at");
    random_state random = random_seed((uint64_t)lua_tointeger(L, -1));
    luaL_argcheck(L, at + elements * sizeof(float) <= p->blob_bytes, 1, "signs");
    float *to = (float *)(void *)(p->blob + at);
    const char *from = field_text(L, section, where, "from", NULL);
    if (!shards_have(p->checkpoint, from)) {
        for (size_t i = 0; i < elements; ++i)
            to[i] = random_bits(&random) >> 63 ? -1.0f : 1.0f;
        return true;
    }
    if (!pack_tensor(p, section, errors))
        return false;
    for (size_t i = 0; i < elements; ++i)
        if (fabsf(to[i]) != 1.0f)
            return files_error(p->error, sizeof p->error, "%s: tensor %s%s: element %zu = %g: must be 1 or -1", p->path, p->prefix, from, i,
                               (double)to[i]);
    return true;
}

bool packing_section(packing *p, int section, int errors)
{
    /* Kinds of sections, by the field that only they have, whose value is on top of the stack. */
    static const struct {
        const char *field;
        bool (*pack)(packing *p, int section, int errors);
    } kinds[] = {{"angles", fill_angles}, {"sinusoids", packing_sinusoids},
                 {"text", copy_text},     {"projected", packing_projected},
                 {"signs", fill_signs},   {"from", pack_tensor}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        if (lua_getfield(p->L, section, kinds[i].field) != LUA_TNIL)
            return kinds[i].pack(p, section, errors);
        lua_pop(p->L, 1);
    }
    return true; /* another one fills it */
}

bool packing_folded(packing *p, int job, const char *name, size_t slices, size_t slice, size_t *count)
{
    lua_getfield(p->L, job, name);
    const int section = lua_gettop(p->L);
    const bool ok = read_slice(p, section, slices, slice, count);
    lua_settop(p->L, section - 1);
    return ok;
}
