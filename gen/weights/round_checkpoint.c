/* Writes a checkpoint again with its matrices and tables in integers of 8 or 4 bits. */
#include "gen/weights/round_checkpoint.h"

#include "gen/host/files.h"
#include "gen/weights/gguf_blocks.h"
#include "gen/weights/quantise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values that are rounded at a time, about: whole rows. */
enum { CHUNK_VALUES = 1 << 16 };

/* One row a form: its name, the type of its values in the file, what the name of its scales ends with, NULL if it has none, and their type;
   of groups how many numbers each has; how values are stored, and of others than groups rounded. */
static const struct {
    const char *name;
    safetensors_dtype dtype;
    const char *ending;
    safetensors_dtype scales;
    size_t of_group;
    quantise_type type;
    const char *blocks; /* of groups: what GGUF files call them */
} forms_list[] = {
    [ROUNDED_F32] = {"f32", DTYPE_F32, NULL, DTYPE_F32, 0, QUANTISE_F32},
    [ROUNDED_I8] = {"i8", DTYPE_I8, SAFETENSORS_SCALE, DTYPE_F32, 0, QUANTISE_I8},
    [ROUNDED_Q8] = {"q8", DTYPE_I8, SAFETENSORS_GROUPS_Q8, DTYPE_F16, 1, QUANTISE_I8, "Q8_0"},
    [ROUNDED_TABLES_I4] = {"tables_i4", DTYPE_I4, SAFETENSORS_HALF_SCALE, DTYPE_F32, 0, QUANTISE_I4},
    [ROUNDED_I4] = {"i4", DTYPE_I4, SAFETENSORS_GROUPS_I4, DTYPE_F16, 1, QUANTISE_I4, "Q4_0"},
    [ROUNDED_U4] = {"u4", DTYPE_I4, SAFETENSORS_GROUPS_U4, DTYPE_F16, 2, QUANTISE_I4, "Q4_1"},
};

rounded_form rounded_form_named(const char *name)
{
    for (size_t i = ROUNDED_F32; i < sizeof forms_list / sizeof *forms_list; ++i)
        if (strcmp(name, forms_list[i].name) == 0)
            return (rounded_form)i;
    return ROUNDED_NOT;
}

rounded_form rounded_by_shape(const safetensors_tensor *tensor, bool tables_in_i4)
{
    static const char ending[] = "tables";
    const size_t length = strlen(tensor->name), own = sizeof ending - 1;
    if (tensor->rank < 2)
        return ROUNDED_F32;
    const bool named =
        length >= own && strcmp(tensor->name + length - own, ending) == 0 && (length == own || tensor->name[length - own - 1] == '.');
    return tables_in_i4 && tensor->rank == 3 && named ? ROUNDED_TABLES_I4 : ROUNDED_I8;
}

/* The form that it has in the end. */
static rounded_form form_of(const rounded_forms *forms, const safetensors_tensor *tensor)
{
    const rounded_form form = forms->form_of(forms->context, tensor);
    if (form > ROUNDED_F32 && (tensor->rank == 0 || tensor->count == 0))
        return ROUNDED_F32;
    const bool fits = tensor->rank < SAFETENSORS_MAX_RANK && (form == ROUNDED_Q8 || tensor->shape[tensor->rank - 1] % 2 == 0);
    return form > ROUNDED_I8 && !fits ? ROUNDED_I8 : form;
}

static size_t width_of(const safetensors_tensor *tensor)
{
    return tensor->rank >= 1 && tensor->count > 0 ? (size_t)tensor->shape[tensor->rank - 1] : 1;
}

static size_t groups_of(size_t width)
{
    return (width + QUANTISE_GROUP - 1) / QUANTISE_GROUP;
}

/* Numbers that a row's scales are. */
static size_t scales_of(rounded_form form, size_t width)
{
    const size_t of_group = forms_list[form].of_group;
    return of_group ? groups_of(width) * of_group : forms_list[form].ending != NULL;
}

/* Of an integer in groups. */
static int bits_of(rounded_form form)
{
    return form == ROUNDED_Q8 ? 8 : 4;
}

/* The file that is written, and memory for a tensor. */
typedef struct {
    const rounded_forms *forms;
    safetensors_writer *writer;
    double *work;          /* [width or CHUNK_VALUES + width] */
    float *bytes;          /* as many, in the widest type */
    unsigned char *scales; /* of all rows of a tensor */
    quantise_tally tally;
} copying;

/* Rows of a tensor that are written in a form together, and where their scales go. */
typedef struct {
    const safetensors *file;
    const safetensors_tensor *tensor;
    rounded_form form;
    size_t first, rows;
    unsigned char *scales;
} some_rows;

/* c->work <- the integers of rows of a tensor that has the groups of the form already, and their scales as they are. */
static bool read_groups(copying *c, const some_rows *some, char *error, size_t error_size)
{
    const safetensors_tensor *const tensor = some->tensor;
    const size_t of_group = forms_list[some->form].of_group;
    const size_t width = width_of(tensor), groups = groups_of(width), size = tensor->blocks->bytes;
    unsigned char *const blocks = (unsigned char *)c->bytes;
    uint16_t *scale = (uint16_t *)(void *)some->scales;
    for (size_t row = 0; row < some->rows; ++row) {
        if (!safetensors_read_blocks(some->file, tensor, (some->first + row) * width, width, blocks, error, error_size))
            return false;
        for (size_t g = 0; g < groups; ++g, scale += of_group) {
            const size_t at = g * QUANTISE_GROUP, count = width - at < QUANTISE_GROUP ? width - at : QUANTISE_GROUP;
            double units[QUANTISE_GROUP];
            gguf_blocks_units(tensor->blocks, blocks + g * size, units, scale, scale + 1);
            memcpy(c->work + row * width + at, units, count * sizeof *units);
        }
    }
    return true;
}

/* Rounds c->work[rows][width] to the form, and finds their scales. False if a value is too large. */
static bool round_rows(copying *c, const some_rows *some)
{
    const rounded_form form = some->form;
    const size_t of_group = forms_list[form].of_group, rows = some->rows, width = width_of(some->tensor);
    uint16_t *scale = (uint16_t *)(void *)some->scales;
    if (!of_group)
        return quantise_round(forms_list[form].type, c->work, rows, width, (float *)(void *)scale, form == ROUNDED_F32 ? NULL : &c->tally);
    for (size_t row = 0; row < rows; ++row)
        for (size_t at = 0; at < width; at += QUANTISE_GROUP, scale += of_group)
            if (!quantise_group(c->work + row * width + at, width - at < QUANTISE_GROUP ? width - at : QUANTISE_GROUP, bits_of(form), scale,
                                of_group == 2 ? scale + 1 : NULL, &c->tally))
                return false;
    return true;
}

void rounded_given_free(rounded_given *given)
{
    free(given->name);
    free(given->halves);
    free(given->scales);
    free(given->known);
}

/* Takes what is given of rows `first` ... first + some - 1 of a tensor in groups, in place of what is in c->bytes and scales. */
static void take_given(copying *c, const safetensors_tensor *tensor, size_t first, size_t some, size_t scale_bytes)
{
    const size_t bytes = width_of(tensor) / 2;
    for (size_t i = 0; c->forms->given != NULL && i < c->forms->given->count; ++i) {
        const rounded_given *const given = &c->forms->given->list[i];
        for (size_t row = first; strcmp(given->name, tensor->name) == 0 && row < first + some; ++row)
            if (given->known[row]) {
                memcpy((unsigned char *)c->bytes + (row - first) * bytes, given->halves + row * bytes, bytes);
                memcpy(c->scales + row * scale_bytes, (const unsigned char *)given->scales + row * scale_bytes, scale_bytes);
            }
    }
}

/* Appends the tensor in integers and their scales, or in F32. */
static bool append(copying *c, const safetensors *file, const safetensors_tensor *tensor, char *error, size_t error_size)
{
    const rounded_form form = form_of(c->forms, tensor);
    if (form == ROUNDED_NOT)
        return true;
    const size_t width = width_of(tensor), rows = tensor->count / width, most = 1 + CHUNK_VALUES / (width + 1);
    const size_t scale_bytes = scales_of(form, width) * safetensors_width(forms_list[form].scales);
    const char *const blocks = safetensors_blocks_name(tensor);
    const quantise_tally before = c->tally;
    const bool kept = blocks != NULL && forms_list[form].blocks != NULL && strcmp(blocks, forms_list[form].blocks) == 0;
    for (size_t row = 0; row < rows; row += most) {
        const some_rows some = {file, tensor, form, row, rows - row < most ? rows - row : most, c->scales + row * scale_bytes};
        const size_t count = some.rows * width;
        if (!safetensors_read(file, tensor, row * width, count, c->work, error, error_size))
            return false;
        if (kept) {
            if (!read_groups(c, &some, error, error_size))
                return false;
        } else if (!round_rows(c, &some))
            return files_error(error, error_size, "%s: tensor %s: a value is too large", safetensors_path(file), tensor->name);
        for (size_t i = 0; i < count; ++i)
            quantise_store(forms_list[form].type, c->work[i], c->bytes, i);
        if (forms_list[form].of_group)
            take_given(c, tensor, row, some.rows, scale_bytes);
        if (!safetensors_append(c->writer, c->bytes, quantise_size(forms_list[form].type, count), error, error_size))
            return false;
    }
    const quantise_tally own = {c->tally.error - before.error, c->tally.power - before.power};
    if (forms_list[form].of_group && quantise_too_small(&own, quantise_levels(bits_of(form), form == ROUNDED_U4)))
        return files_error(error, error_size, "%s: tensor %s: values are too small for %s", safetensors_path(file), tensor->name,
                           forms_list[form].name);
    return safetensors_append(c->writer, c->scales, rows * scale_bytes, error, error_size);
}

/* What the writer has to know of the tensors of all files, with their scales; *count of them, from malloc, whose names are list's. */
typedef struct {
    safetensors_description *list;
    char **names; /* of scales, NULL for others */
    size_t count;
} descriptions;

static void free_descriptions(descriptions *d)
{
    for (size_t i = 0; d->names != NULL && i < d->count; ++i)
        free(d->names[i]);
    free(d->names);
    free(d->list);
}

static bool describe(descriptions *d, const safetensors_tensor *tensor, rounded_form form)
{
    if (form == ROUNDED_NOT)
        return true;
    safetensors_description *const own = &d->list[d->count++];
    *own = (safetensors_description){.name = tensor->name, .rank = tensor->rank, .dtype = forms_list[form].dtype};
    memcpy(own->shape, tensor->shape, sizeof own->shape);
    const char *const ending = forms_list[form].ending;
    if (ending == NULL)
        return true;
    const size_t length = strlen(tensor->name) + strlen(ending) + 1;
    char *const name = malloc(length);
    if (name == NULL)
        return false;
    snprintf(name, length, "%s%s", tensor->name, ending);
    d->names[d->count] = name;
    safetensors_description *const scales = &d->list[d->count++];
    *scales = *own;
    scales->name = name;
    scales->rank = tensor->rank - 1;
    scales->dtype = forms_list[form].scales;
    if (forms_list[form].of_group)
        scales->shape[scales->rank++] = (int64_t)groups_of(width_of(tensor));
    if (forms_list[form].of_group == 2)
        scales->shape[scales->rank++] = 2;
    return true;
}

bool rounded_write(const shards *checkpoint, const char *path, const rounded_forms *forms, double *error_share, char *error,
                   size_t error_size)
{
    size_t tensors = 0, widest = 0, most_scales = 1, halves = 0;
    for (size_t i = 0; i < shards_count(checkpoint); ++i) {
        const safetensors *const file = shards_at(checkpoint, i);
        tensors += safetensors_count(file);
        for (size_t k = 0; k < safetensors_count(file); ++k) {
            const safetensors_tensor *const tensor = safetensors_at(file, k);
            const rounded_form form = form_of(forms, tensor);
            const size_t width = width_of(tensor), scales = form == ROUNDED_NOT ? 0 : tensor->count / width * scales_of(form, width);
            halves += form > ROUNDED_Q8;
            widest = width > widest ? width : widest;
            most_scales = scales > most_scales ? scales : most_scales;
        }
    }
    if (forms->needs_halves && halves == 0)
        return files_error(error, error_size, "%s: has no %s with rows of an even width, which alone can be in i4", shards_path(checkpoint),
                           forms->needs_halves);
    descriptions d = {calloc(2 * tensors + 1, sizeof *d.list), calloc(2 * tensors + 1, sizeof *d.names), 0};
    copying c = {.forms = forms, .scales = malloc(most_scales * sizeof(float))};
    c.work = malloc((CHUNK_VALUES + 2 * widest) * sizeof *c.work);
    c.bytes = malloc((CHUNK_VALUES + 2 * widest) * sizeof *c.bytes);
    bool good = d.list != NULL && d.names != NULL && c.work != NULL && c.bytes != NULL && c.scales != NULL;
    for (size_t i = 0; good && i < shards_count(checkpoint); ++i)
        for (size_t k = 0; good && k < safetensors_count(shards_at(checkpoint, i)); ++k) {
            const safetensors_tensor *const tensor = safetensors_at(shards_at(checkpoint, i), k);
            good = describe(&d, tensor, form_of(forms, tensor));
        }
    if (!good)
        files_error(error, error_size, "%s: not enough memory", path);
    c.writer = good ? safetensors_create(path, d.list, d.count, error, error_size) : NULL;
    good = c.writer != NULL;
    for (size_t i = 0; good && i < shards_count(checkpoint); ++i) {
        const safetensors *const file = shards_at(checkpoint, i);
        for (size_t k = 0; good && k < safetensors_count(file); ++k)
            good = append(&c, file, safetensors_at(file, k), error, error_size);
    }
    if (good) {
        good = safetensors_finish(c.writer, error, error_size);
    } else {
        safetensors_abandon(c.writer);
    }
    if (error_share != NULL)
        *error_share = c.tally.power > 0.0 ? sqrt(c.tally.error / c.tally.power) : 0.0;
    free(c.scales);
    free(c.bytes);
    free(c.work);
    free_descriptions(&d);
    return good;
}
