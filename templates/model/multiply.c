//$ takes matrix, v, helper, name, what, of, fields, rounded
//$ -- The product with a linear map. of: the declaration of what has its weights; fields: { name, value } of the map.

/* y = W x + bias of $(what), row by row$(v.product.unpacks and "; strip: room for weights in floats, or null" or ""). */
static void $(helper)_multiply_$(name)($(of), const $(rounded and "uint32_t" or "float") *x, size_t x_step, float *y, size_t y_step,
    size_t rows$(v.product.unpacks and ", float *strip" or ""))
{
    $(matrix) map;

    map.$(field.name) = $(field.value); //$ for _, field in ipairs(fields)
    map.strip = strip; //$ if v.product.unpacks
    $(v.names.product)(&map, x, x_step, y, y_step, rows);
}
