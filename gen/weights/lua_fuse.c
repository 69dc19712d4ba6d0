/* The Lua module `fuse`: an interpreter of the steps that gen/families/model/blocks/fuse.lua makes of a transformer. It knows products,
   inverses and streams, no name and no shape of its own. Compiled with -ffp-contract=off. */
#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/host/host.h"
#include "gen/host/progress.h"
#include "gen/weights/lu.h"
#include "gen/weights/matmul.h"
#include "gen/weights/quantise.h"
#include "gen/weights/shards.h"
#include "gen/weights/view.h"

#include <errno.h>
#include <lauxlib.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ERROR_SIZE = 4096 + 256,
    CHUNK_ROWS = 192,       /* of a matrix that streams by */
    CHUNK_VALUES = 8 << 20, /* at most, of a result that waits for the end of a sum */
    DEEP = 128,             /* rows of the other factor that are read at a time */
    MOST_REFINEMENTS = 3,
};

/* What a fusion in progress holds; freed in one place. */
typedef struct {
    lua_State *L;
    const char *path, *label;
    shards *in;
    shards_writer *out;
    double *matrix, *offset; /* what "load" loaded: [rows][columns], and [rows] or NULL */
    size_t rows, columns;
    double *factors; /* of matrix, after "factor" */
    size_t *swaps;
    lu inverse;
    double *work[6]; /* of the step */
    void *bytes;
    progress progress;
    double most_condition, most_error;
    char error[ERROR_SIZE];
} fusion;

static bool __attribute__((format(printf, 2, 3))) fail(fusion *f, const char *format, ...)
{
    char rule[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(rule, sizeof rule, format, arguments);
    va_end(arguments);
    return files_error(f->error, sizeof f->error, "%s: %s: %s", f->path, f->label, rule);
}

/* malloc of doubles into *place, whose old content is freed. */
static bool room(fusion *f, double **place, size_t rows, size_t columns)
{
    free(*place);
    *place = calloc(rows * columns + 1, sizeof **place);
    return *place != NULL || fail(f, "not enough memory for %zu by %zu float64", rows, columns);
}

static void free_work(fusion *f)
{
    for (size_t i = 0; i < sizeof f->work / sizeof *f->work; ++i) {
        free(f->work[i]);
        f->work[i] = NULL;
    }
    free(f->bytes);
    f->bytes = NULL;
}

static bool tick(fusion *f, double work)
{
    return progress_add(&f->progress, work) || files_error(f->error, sizeof f->error, "interrupted");
}

/* ---- reading ---- */

/* The view in the field `name` of a step; *there says whether there is one. */
static bool open_view(fusion *f, int step, const char *name, view *v, bool *there)
{
    lua_State *L = f->L;
    *there = lua_getfield(L, step, name) == LUA_TTABLE;
    const bool good = !*there || view_at(L, lua_gettop(L), "tensor", (view_source){f->in, NULL}, v, f->error, sizeof f->error);
    lua_pop(L, 1);
    return good;
}

/* out[count][columns] <- rows first ... first + count - 1. */
static bool read_rows(fusion *f, const view *v, size_t first, size_t count, double *out)
{
    return view_read(v, first, count, out, f->error, sizeof f->error);
}

/* ---- writing ---- */

static quantise_type quantise_type_of(safetensors_dtype dtype)
{
    switch (dtype) {
    case DTYPE_F16: return QUANTISE_F16;
    case DTYPE_BF16: return QUANTISE_BF16;
    case DTYPE_F64: return QUANTISE_F64;
    default: return QUANTISE_F32;
    }
}

/* Rounds values[count] in place to the dtype in the field `key` of a step, and appends them. */
static bool write_values(fusion *f, int step, const char *key, double *values, size_t count)
{
    const char *dtype = field_text(f->L, step, "step.", key, NULL);
    const quantise_type type = quantise_type_of(safetensors_dtype_named(dtype));
    const size_t bytes = quantise_size(type, count);
    quantise_tally ignored = {0};
    if (!quantise_round(type, values, 1, count, NULL, &ignored))
        return fail(f, "%s: a merged value is too large for %s", field_text(f->L, step, "step.", "name", NULL), dtype);
    free(f->bytes);
    f->bytes = malloc(bytes + 1);
    if (f->bytes == NULL)
        return fail(f, "not enough memory");
    for (size_t i = 0; i < count; ++i)
        quantise_store(type, values[i], f->bytes, i);
    return shards_append(f->out, f->bytes, bytes, f->error, sizeof f->error);
}

/* ---- steps ---- */

static matmul_matrix rows_of(const double *data, size_t columns)
{
    return (matmul_matrix){data, columns, 1};
}

/* {"load", rows, columns, has_offset, parts}: the matrix is the parts' `from` below each other, its offset the parts' `bias`. */
static bool step_load(fusion *f, int step, int results)
{
    (void)results;
    lua_State *L = f->L;
    free(f->factors);
    free(f->swaps);
    free(f->offset);
    f->factors = f->offset = NULL;
    f->swaps = NULL;
    f->rows = (size_t)field_integer(L, step, "step.", "rows", 1, 0);
    f->columns = (size_t)field_integer(L, step, "step.", "columns", 1, 0);
    const bool has_offset = field_flag(L, step, "has_offset");
    if (!room(f, &f->matrix, f->rows, f->columns) || (has_offset && !room(f, &f->offset, f->rows, 1)))
        return false;
    lua_getfield(L, step, "parts");
    const int parts = lua_gettop(L);
    size_t at = 0;
    bool good = true;
    for (lua_Integer i = 1; good && lua_rawgeti(L, parts, i) == LUA_TTABLE; ++i) {
        view v, b;
        bool there, has_bias;
        const int part = lua_gettop(L);
        good = open_view(f, part, "from", &v, &there) && open_view(f, part, "bias", &b, &has_bias);
        if (good) {
            luaL_argcheck(L, there && v.columns == f->columns && at + v.rows <= f->rows && (!has_bias || (has_offset && b.rows == v.rows)),
                          1, "parts");
            good = read_rows(f, &v, 0, v.rows, f->matrix + at * f->columns) && (!has_bias || read_rows(f, &b, 0, b.rows, f->offset + at));
            at += v.rows;
        }
        lua_settop(L, parts);
    }
    lua_settop(L, parts - 1);
    return good;
}

/* {"factor", name, first_look}: LU of the matrix. Result, unless it is but a first look: { condition }. */
static bool step_factor(fusion *f, int step, int results)
{
    const char *name = field_text(f->L, step, "step.", "name", NULL);
    const size_t n = f->rows;
    luaL_argcheck(f->L, n == f->columns, 1, "factor");
    if (!room(f, &f->factors, n, n))
        return false;
    f->swaps = malloc(n * sizeof *f->swaps);
    if (f->swaps == NULL || !room(f, &f->work[0], n, 2))
        return fail(f, "not enough memory");
    memcpy(f->factors, f->matrix, n * n * sizeof *f->matrix);
    size_t column = 0;
    switch (lu_factor(&f->inverse, f->factors, f->swaps, n, &column, &f->progress)) {
    case LU_SINGULAR: return fail(f, "%s: is singular: pivot %zu of %zu is 0", name, column + 1, n);
    case LU_INTERRUPTED: return tick(f, 0.0);
    case LU_DONE: break;
    }
    const double condition = lu_condition(&f->inverse, f->work[0]);
    if (!(condition <= f->most_condition))
        return fail(f, "%s: condition number %.2g: must be at most %.2g (--max-condition)", name, condition, f->most_condition);
    if (field_flag(f->L, step, "first_look"))
        return true;
    lua_newtable(f->L);
    field_set_number(f->L, "condition", condition);
    field_set_text(f->L, "name", name);
    lua_rawseti(f->L, results, (lua_Integer)lua_rawlen(f->L, results) + 1);
    return true;
}

/* A view as a matrix of its own, in the dtype of its tensor. */
static bool copy_rows(fusion *f, int step, const view *v)
{
    if (!room(f, &f->work[0], CHUNK_ROWS, v->columns))
        return false;
    for (size_t row = 0; row < v->rows; row += CHUNK_ROWS) {
        const size_t count = v->rows - row < CHUNK_ROWS ? v->rows - row : CHUNK_ROWS;
        if (!read_rows(f, v, row, count, f->work[0]) || !write_values(f, step, "dtype", f->work[0], count * v->columns) ||
            !tick(f, (double)(count * v->columns)))
            return false;
    }
    return true;
}

/* {"copy", from}: the tensor as it is; of a view that is transposed, or packed with others, the matrix, [rows][columns]. */
static bool step_copy(fusion *f, int step, int results)
{
    (void)results;
    view v;
    bool there;
    if (!open_view(f, step, "from", &v, &there))
        return false;
    if (v.transposed || v.stride > 0)
        return copy_rows(f, step, &v);
    const size_t width = safetensors_width(v.tensor->dtype), most = 1 << 20;
    if (!room(f, &f->work[0], most, 1) || !room(f, &f->work[1], most, 1))
        return false;
    for (size_t at = 0; at < v.tensor->count; at += most) {
        const size_t count = v.tensor->count - at < most ? v.tensor->count - at : most;
        if (!safetensors_read(v.file, v.tensor, at, count, f->work[0], f->error, sizeof f->error) ||
            !safetensors_read_bytes(v.file, v.tensor, at, count, f->work[1], f->error, sizeof f->error) ||
            !shards_append(f->out, f->work[1], count * width, f->error, sizeof f->error) || !tick(f, (double)count))
            return false;
    }
    return true;
}

/* {"left", from}: matrix times a matrix that streams by several times, for sums of whole columns must wait. */
static bool step_left(fusion *f, int step, int results)
{
    (void)results;
    view v;
    bool there;
    if (!open_view(f, step, "from", &v, &there))
        return false;
    luaL_argcheck(f->L, v.rows == f->columns, 1, "left");
    size_t most = CHUNK_VALUES / v.columns;
    most = most < CHUNK_ROWS ? CHUNK_ROWS : most > f->rows ? f->rows : most;
    if (!room(f, &f->work[0], most, v.columns) || !room(f, &f->work[1], DEEP, v.columns))
        return false;
    for (size_t row = 0; row < f->rows; row += most) {
        const size_t count = f->rows - row < most ? f->rows - row : most;
        memset(f->work[0], 0, count * v.columns * sizeof **f->work);
        for (size_t k = 0; k < v.rows; k += DEEP) {
            const size_t deep = v.rows - k < DEEP ? v.rows - k : DEEP;
            if (!read_rows(f, &v, k, deep, f->work[1]))
                return false;
            matmul_add(1.0, (matmul_sizes){count, v.columns, deep}, rows_of(f->matrix + row * f->columns + k, f->columns),
                       rows_of(f->work[1], v.columns), f->work[0], v.columns);
            if (!tick(f, 2.0 * (double)count * (double)deep * (double)v.columns))
                return false;
        }
        if (!write_values(f, step, "dtype", f->work[0], count * v.columns))
            return false;
    }
    return true;
}

/* {"vector", from, add_offset}: matrix times the vector `from` if there is one, plus the offset if that is asked for. */
static bool step_vector(fusion *f, int step, int results)
{
    (void)results;
    view v;
    bool there;
    if (!open_view(f, step, "from", &v, &there) || !room(f, &f->work[0], f->rows, 1))
        return false;
    double *sum = f->work[0];
    if (there) {
        luaL_argcheck(f->L, v.rows == f->columns && v.columns == 1, 1, "vector");
        if (!room(f, &f->work[1], v.rows, 1) || !read_rows(f, &v, 0, v.rows, f->work[1]))
            return false;
        matmul_add(1.0, (matmul_sizes){f->rows, 1, f->columns}, rows_of(f->matrix, f->columns), rows_of(f->work[1], 1), sum, 1);
    }
    const bool add = field_flag(f->L, step, "add_offset") && f->offset != NULL;
    for (size_t i = 0; add && i < f->rows; ++i)
        sum[i] += f->offset[i];
    return write_values(f, step, "dtype", sum, f->rows);
}

/* The bias that a step with the field `with_bias` writes behind its matrix, [rows]: as the view `bias` has it, or zeros; else NULL. */
static bool open_bias(fusion *f, int step, size_t rows, double **bias)
{
    view b;
    bool there;
    *bias = NULL;
    if (!field_flag(f->L, step, "with_bias"))
        return true;
    if (!open_view(f, step, "bias", &b, &there) || !room(f, &f->work[5], rows, 1))
        return false;
    luaL_argcheck(f->L, !there || b.rows == rows, 1, "bias");
    *bias = f->work[5];
    return !there || read_rows(f, &b, 0, rows, *bias);
}

/* bias[count] += sign * rows[count][columns] offset: what the offset of the matrix contributes. */
static void add_offset(double sign, const double *rows, size_t count, size_t columns, const double *offset, double *bias)
{
    if (bias != NULL && offset != NULL)
        matmul_add(sign, (matmul_sizes){count, 1, columns}, rows_of(rows, columns), rows_of(offset, 1), bias, 1);
}

/* Every row of `from` times the matrix, or the transposed one. */
static bool stream(fusion *f, int step, bool transposed)
{
    view v;
    bool there;
    double *bias;
    if (!open_view(f, step, "from", &v, &there))
        return false;
    const size_t depth = transposed ? f->columns : f->rows, width = transposed ? f->rows : f->columns;
    luaL_argcheck(f->L, v.columns == depth, 1, "stream");
    const bool add = field_flag(f->L, step, "add_offset") && f->offset != NULL;
    const double share = add ? field_number(f->L, step, "step.", "offset_factor") : 0.0;
    if (!room(f, &f->work[0], CHUNK_ROWS, depth) || !room(f, &f->work[1], CHUNK_ROWS, width) || !open_bias(f, step, v.rows, &bias))
        return false;
    const matmul_matrix factor = transposed ? (matmul_matrix){f->matrix, 1, f->columns} : rows_of(f->matrix, f->columns);
    for (size_t row = 0; row < v.rows; row += CHUNK_ROWS) {
        const size_t count = v.rows - row < CHUNK_ROWS ? v.rows - row : CHUNK_ROWS;
        if (!read_rows(f, &v, row, count, f->work[0]))
            return false;
        for (size_t i = 0; i < count; ++i)
            for (size_t j = 0; j < width; ++j)
                f->work[1][i * width + j] = add ? share * f->offset[j] : 0.0;
        matmul_add(1.0, (matmul_sizes){count, width, depth}, rows_of(f->work[0], depth), factor, f->work[1], width);
        if (bias != NULL)
            add_offset(1.0, f->work[0], count, depth, f->offset, bias + row);
        if (!write_values(f, step, "dtype", f->work[1], count * width) || !tick(f, 2.0 * (double)count * (double)depth * (double)width))
            return false;
    }
    return bias == NULL || write_values(f, step, "bias_dtype", bias, v.rows);
}

/* {"rows", from, add_offset, offset_factor}: every row times the transposed matrix, plus so much of the offset if that is asked for. */
static bool step_rows(fusion *f, int step, int results)
{
    (void)results;
    return stream(f, step, true);
}

/* {"right", from, bias}: every row times the matrix; the bias grows by every row times the offset. */
static bool step_right(fusion *f, int step, int results)
{
    (void)results;
    return stream(f, step, false);
}

static double sum_of_squares(const double *values, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; ++i)
        sum += values[i] * values[i];
    return sum;
}

/* residual[count][n] <- rows - solution times the matrix. Returns the sum of squares. */
static double residual_of(const fusion *f, const double *rows_given, const double *solution, size_t count, double *residual)
{
    const size_t n = f->columns;
    memcpy(residual, rows_given, count * n * sizeof *residual);
    matmul_add(-1.0, (matmul_sizes){count, n, n}, rows_of(solution, n), rows_of(f->matrix, n), residual, n);
    return sum_of_squares(residual, count * n);
}

/* solution <- X with X times the matrix = rows, refined while that at least halves the residual, whose sum of squares is returned. */
static double solve_refined(fusion *f, const double *rows_given, size_t count, double **solution, double **residual, double **spare)
{
    const size_t n = f->columns;
    memcpy(*solution, rows_given, count * n * sizeof **solution);
    lu_solve_rows(&f->inverse, *solution, count);
    double best = residual_of(f, rows_given, *solution, count, *residual);
    for (int i = 0; i < MOST_REFINEMENTS && best > 0.0; ++i) {
        lu_solve_rows(&f->inverse, *residual, count);
        for (size_t k = 0; k < count * n; ++k)
            (*spare)[k] = (*solution)[k] + (*residual)[k];
        const double next = residual_of(f, rows_given, *spare, count, *residual);
        if (!(next < best))
            break;
        double *kept = *solution;
        *solution = *spare;
        *spare = kept;
        const bool halved = next <= best / 4.0;
        best = next;
        if (!halved)
            break;
    }
    return best;
}

/* {"solve", from, bias}: every row times the inverse of the matrix; the bias loses every new row times the offset. Result: { residual,
   error }: sizes of what times the matrix differs from the rows, before and after rounding to the dtype, over the size of the rows. */
static bool step_solve(fusion *f, int step, int results)
{
    lua_State *L = f->L;
    view v;
    bool there;
    double *bias, *solution, *residual, *spare;
    if (!open_view(f, step, "from", &v, &there))
        return false;
    const size_t n = f->columns;
    luaL_argcheck(L, f->factors != NULL && v.columns == n, 1, "solve");
    for (int i = 0; i < 4; ++i)
        if (!room(f, &f->work[i], CHUNK_ROWS, n))
            return false;
    if (!open_bias(f, step, v.rows, &bias))
        return false;
    double size = 0.0, unrounded = 0.0, rounded = 0.0;
    for (size_t row = 0; row < v.rows; row += CHUNK_ROWS) {
        const size_t count = v.rows - row < CHUNK_ROWS ? v.rows - row : CHUNK_ROWS;
        if (!read_rows(f, &v, row, count, f->work[0]))
            return false;
        solution = f->work[1];
        residual = f->work[2];
        spare = f->work[3];
        size += sum_of_squares(f->work[0], count * n);
        unrounded += solve_refined(f, f->work[0], count, &solution, &residual, &spare);
        if (!write_values(f, step, "dtype", solution, count * n))
            return false;
        rounded += residual_of(f, f->work[0], solution, count, residual);
        if (bias != NULL)
            add_offset(-1.0, solution, count, n, f->offset, bias + row);
        if (!tick(f, 10.0 * (double)count * (double)n * (double)n))
            return false;
    }
    const double scale = size > 0.0 ? sqrt(size) : 1.0, error = sqrt(rounded) / scale;
    if (!(error <= f->most_error))
        return fail(f, "%s: relative error %.2g in %s: must be at most %.2g (--max-error)", field_text(L, step, "step.", "name", NULL),
                    error, field_text(L, step, "step.", "dtype", NULL), f->most_error);
    lua_newtable(L);
    field_set_number(L, "residual", sqrt(unrounded) / scale);
    field_set_number(L, "error", error);
    field_set_text(L, "name", field_text(L, step, "step.", "name", NULL));
    lua_rawseti(L, results, (lua_Integer)lua_rawlen(L, results) + 1);
    return bias == NULL || write_values(f, step, "bias_dtype", bias, v.rows);
}

static const struct {
    const char *name;
    bool (*run)(fusion *f, int step, int results);
} operations[] = {
    {"load", step_load},     {"factor", step_factor}, {"copy", step_copy},   {"left", step_left},
    {"vector", step_vector}, {"rows", step_rows},     {"right", step_right}, {"solve", step_solve},
};

static bool run_step(fusion *f, int step, int results)
{
    const char *name = field_text(f->L, step, "step.", "op", NULL);
    f->label = field_text(f->L, step, "step.", "label", NULL);
    f->progress.label = f->label;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i) {
        if (strcmp(operations[i].name, name) == 0) {
            const bool good = tick(f, 0.0) && operations[i].run(f, step, results);
            free_work(f);
            return good;
        }
    }
    return luaL_error(f->L, "unknown step %s", name);
}

/* Starts a file with the tensors in its array `tensors`. */
static bool create_file(fusion *f, int file)
{
    lua_State *L = f->L;
    lua_getfield(L, file, "tensors");
    const int tensors = lua_gettop(L);
    const size_t count = lua_rawlen(L, tensors);
    safetensors_description *list = calloc(count + 1, sizeof *list);
    if (list == NULL)
        return files_error(f->error, sizeof f->error, "not enough memory");
    for (size_t i = 0; i < count; ++i) {
        lua_rawgeti(L, tensors, (lua_Integer)i + 1);
        const int tensor = lua_gettop(L);
        list[i].name = field_text(L, tensor, "tensor.", "name", NULL);
        list[i].dtype = safetensors_dtype_named(field_text(L, tensor, "tensor.", "dtype", NULL));
        list[i].rank = field_dimensions(L, tensor, "shape", list[i].shape, SAFETENSORS_MAX_RANK);
        lua_settop(L, tensors);
    }
    const bool good = shards_add(f->out, field_text(L, file, "file.", "path", NULL), list, count, f->error, sizeof f->error);
    free(list);
    lua_settop(L, tensors - 1);
    return good;
}

/* Starts all files of the job. */
static bool create_files(fusion *f, int job)
{
    lua_State *L = f->L;
    const char *index = field_text(L, job, "job.", "index", "");
    f->out = shards_create(*index == '\0' ? NULL : index, field_text(L, job, "job.", "index_text", ""), f->error, sizeof f->error);
    lua_getfield(L, job, "files");
    const int files = lua_gettop(L);
    bool good = f->out != NULL;
    for (lua_Integer i = 1; good && lua_rawgeti(L, files, i) == LUA_TTABLE; ++i) {
        good = create_file(f, lua_gettop(L));
        lua_settop(L, files);
    }
    lua_settop(L, files - 1);
    return good;
}

/* All tensors of a step, or of a part of one, must be there with their shapes. */
static bool check_views(fusion *f, int step)
{
    lua_State *L = f->L;
    view v;
    bool there, good = open_view(f, step, "from", &v, &there) && open_view(f, step, "bias", &v, &there);
    if (lua_getfield(L, step, "parts") == LUA_TTABLE) {
        const int parts = lua_gettop(L);
        for (lua_Integer i = 1; good && lua_rawgeti(L, parts, i) == LUA_TTABLE; ++i) {
            good = check_views(f, lua_gettop(L));
            lua_settop(L, parts);
        }
        lua_settop(L, parts);
    }
    lua_pop(L, 1);
    return good;
}

/* Opens the checkpoint, which must have all tensors of the job's `steps`. */
static bool open_checked(fusion *f, int steps)
{
    lua_State *L = f->L;
    f->in = shards_open(f->path, f->error, sizeof f->error);
    bool good = f->in != NULL;
    for (lua_Integer i = 1; good && lua_rawgeti(L, steps, i) == LUA_TTABLE; ++i) {
        good = check_views(f, lua_gettop(L));
        lua_settop(L, steps);
    }
    lua_settop(L, steps);
    return good;
}

static bool run_job(fusion *f, int job, int results)
{
    lua_State *L = f->L;
    lua_getfield(L, job, "steps");
    const int steps = lua_gettop(L);
    bool good = open_checked(f, steps) && create_files(f, job);
    for (lua_Integer i = 1; good && lua_rawgeti(L, steps, i) == LUA_TTABLE; ++i) {
        good = run_step(f, lua_gettop(L), results);
        lua_settop(L, steps);
    }
    lua_settop(L, steps - 1);
    if (!good)
        return false;
    shards_writer *out = f->out;
    f->out = NULL;
    return shards_finish(out, f->error, sizeof f->error);
}

/* Whether there is a folder at a path where none could be made; errno says why. */
static bool is_folder(const char *path, char *error, size_t error_size)
{
    struct stat status;
    const int reason = errno == EEXIST ? ENOTDIR : errno;
    return (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) ||
           (files_leads_somewhere(path, error, error_size) && files_error(error, error_size, "%s: %s", path, strerror(reason)));
}

/* fuse.run(job) -> array of what the steps found | nil, message. The job is gen/families/model/blocks/fuse.lua's: weights, files = { {
   path, tensors = { { name, dtype, shape } } } } in the order of their values, for several also index, index_text and directory, made if
   need be; steps, work, most_condition, most_error. Writes all files or none. */
static int fuse_run(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    fusion f = {.L = L, .path = field_text(L, 1, "job.", "weights", NULL), .label = ""};
    f.most_condition = field_number(L, 1, "fuse: ", "most_condition");
    f.most_error = field_number(L, 1, "fuse: ", "most_error");
    f.progress = progress_start(field_number(L, 1, "fuse: ", "work"));
    lua_newtable(L);
    const int results = lua_gettop(L);
    const char *directory = field_text(L, 1, "job.", "directory", "");
    sigset_t interrupts, before; /* they wait until nothing is half done */
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    sigaddset(&interrupts, SIGTERM);
    sigaddset(&interrupts, SIGHUP);
    sigprocmask(SIG_BLOCK, &interrupts, &before);
    const bool made = *directory != '\0' && mkdir(directory, 0777) == 0;
    const bool good = (made || *directory == '\0' || is_folder(directory, f.error, sizeof f.error)) && run_job(&f, 1, results);
    progress_end(&f.progress);
    shards_abandon(f.out);
    if (made && !good)
        rmdir(directory);
    sigprocmask(SIG_SETMASK, &before, NULL);
    shards_close(f.in);
    free(f.matrix);
    free(f.offset);
    free(f.factors);
    free(f.swaps);
    free_work(&f);
    if (!good)
        return host_fail(L, f.error);
    lua_settop(L, results);
    return 1;
}

/* fuse.check(job) -> true | nil, message: whether fuse.run would find its tensors. */
static int fuse_check(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    fusion f = {.L = L, .path = field_text(L, 1, "job.", "weights", NULL), .label = ""};
    lua_getfield(L, 1, "steps");
    const bool good = open_checked(&f, 2);
    shards_close(f.in);
    if (!good)
        return host_fail(L, f.error);
    lua_pushboolean(L, true);
    return 1;
}

int luaopen_fuse(lua_State *L)
{
    static const luaL_Reg functions[] = {{"run", fuse_run}, {"check", fuse_check}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
