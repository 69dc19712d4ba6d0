//$ takes matrix, v, helper, type, panel, rounded, map, first, panels, name
//$ -- The product with a map of the model, of panels from number `first` on.
//$ local what = first > 0 and "panels of " .. map.name .. " from number " .. first .. " on" or map.name
//$ local function from(field, step) return sum("weights->" .. field, first > 0 and first * step or 0) end
//$ local x, storage = rounded and names.rounded_rows or names.rows, rounded and rounded.storage or "float"

/* y = W x + bias of $(what), row by row$(v.product.unpacks and "; strip: room for weights in floats, or null" or ""). */
static void $(helper)_multiply_$(name)(const $(names.weights) *weights, const $(storage) *x, size_t x_step,
    float *y, size_t y_step, size_t rows$(v.product.unpacks and ", float *strip" or ""))
{
    $(matrix) map;
    $(x) from;
    $(names.rows) to;

    map.weights = $(from(map.name, map.panel_step));
    map.scales = $(from(map.name .. "_scales", panel)); //$ if type.scaled
    map.bias = $(from(map.bias, panel));
    map.strip = strip; //$ if v.product.unpacks
    map.inputs = $(map.inputs);
    map.panels = $(panels);
    from.at = ($(storage) *) (uintptr_t) x; /* only read */
    from.step = x_step;
    to.at = y;
    to.step = y_step;
    $(v.names.product)(&map, &from, &to, rows);
}
