/* A matrix [rows][columns] that lies in a tensor: rows of it, packed with others, or stored [in][out]. */
#ifndef LOOKUPC_WEIGHTS_VIEW_H
#define LOOKUPC_WEIGHTS_VIEW_H

#include "gen/weights/shards.h"

#include <lua.h>

/* Row r is number r / group * stride + offset + r % group among the rows of the tensor as a matrix of `columns` columns; of a transposed
   view, among the columns of the tensor as a matrix of `columns` rows. */
typedef struct {
    const safetensors *file;
    const safetensors_tensor *tensor;
    size_t rows, columns, group, stride, offset;
    double raised; /* what elements are more than those of the tensor, which view_read gives */
    bool transposed;
} view;

/* Where tensors of views are: names begin with `prefix`, NULL: with none. */
typedef struct {
    const shards *checkpoint;
    const char *prefix;
} view_source;

/* The view that a table describes { tensor, shape, rows, columns, group, stride, offset, raised, transposed }, as
   gen/schema/checkpoint_names.lua makes them; `name` is the field with the tensor's name. False with one line that starts with a path if
   the tensor is absent or has another shape. */
bool view_at(lua_State *L, int table, const char *name, view_source in, view *v, char *error, size_t error_size);

/* The number of the view's row among the rows, or columns, of its tensor. */
size_t view_row(const view *v, size_t row);

/* out[count][columns] <- rows first ... first + count - 1. Fails as safetensors_read does. */
bool view_read(const view *v, size_t first, size_t count, double *out, char *error, size_t error_size);

#endif
