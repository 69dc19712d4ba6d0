//$ takes isa, prologue, symbol, tile, of_tile, vectors, norm, eps, one_over_d, x_rows, transposes
//$ lines(prologue)
//$ local transpose = {}
//$ for _, n in ipairs(isa.lanes > 1 and transposes or {}) do
//$     transpose[n] = once("templates/lookup/shared/transpose.c", { columns = n })
//$         .. (n == isa.lanes and "_transpose" or "_transpose_last")
//$ end

/* Loads one tile: token by token in memory becomes feature by feature, $(tile) tokens side by side.
//$ if norm then
   Then LayerNorm without gain and offset, which are folded into the projection:

     (x - mean) / sqrt(variance + $(eps))

//$ end
   x       [tokens]$(x_rows), any alignment
   tokens  1 … $(tile); the places of absent tokens repeat the last one
   loaded  [$(shape.d)][$(tile)], aligned to a vector, must not overlap x. Cannot fail. */
void $(symbol)(const float *restrict x, size_t tokens, float *restrict loaded)
{
//$ if tile > 1 then
    const float *row[$(tile)];
    for (size_t token = 0; token < $(tile); ++token)
        row[token] = x + (token < tokens ? token : tokens - 1) * $(shape.x_step);

//$ end
//$ if tile == 1 then
    (void) tokens; /* one */
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
//$ loop("column", 0, shape.d, 1, function(column)
        loaded[$(column)] = one * x[$(column)];
//$ end)
//$ elseif isa.lanes == 1 then
//$ loop("column", 0, shape.d, 1, function(column)
        for (size_t token = 0; token < $(tile); ++token)
            loaded[$(sum(times(column, tile), "token"))] = row[token][$(column)];
//$ end, { braces = false })
//$ else
//$ local full = shape.d - shape.d % isa.lanes
//$ loop("token", 0, tile, isa.lanes, function(token)
//$     local row = sum("row", token)
//$     if full == isa.lanes then
        $(transpose[isa.lanes])($(row), 0, $(sum("loaded", token)));
//$     elseif full > 0 then
        for (size_t column = 0; column < $(full); $(advance("column", isa.lanes)))
            $(transpose[isa.lanes])($(row), column, $(sum("loaded + column * " .. tile, token)));
//$     end
        $(transpose[shape.d % isa.lanes])($(row), $(full), $(sum("loaded", of_tile(full * tile), token))); //$ if full < shape.d
//$ end)
//$ end
//$ if norm then

    $(isa.vector) sum$(n) = $(isa.zero()); //$ for n = 0, vectors - 1
    for (size_t i = 0; i < $(shape.d) * $(tile); i += $(tile)) {
        sum$(n) = $(isa.add("sum" .. n, isa.load("loaded", sum("i", n * isa.lanes)))); //$ for n = 0, vectors - 1
    }
    const $(isa.vector) mean$(n) = $(isa.mul("sum" .. n, isa.broadcast(one_over_d))); //$ for n = 0, vectors - 1

//$ for n = 0, vectors - 1 do
    $(isa.vector) square$(n) = $(isa.zero());
    $(isa.vector) rest$(n) = $(isa.zero()); /* what rounding left out of the mean */
//$ end
    for (size_t i = 0; i < $(shape.d) * $(tile); i += $(tile)) {
//$ for n = 0, vectors - 1 do
        const $(isa.vector) centred$(n) = $(isa.sub(isa.load("loaded", sum("i", n * isa.lanes)), "mean" .. n));
        square$(n) = $(isa.fma("centred" .. n, "centred" .. n, "square" .. n));
        rest$(n) = $(isa.add("rest" .. n, "centred" .. n));
//$ end
    }
//$ for n = 0, vectors - 1 do
    const $(isa.vector) shift$(n) = $(isa.mul("rest" .. n, isa.broadcast(one_over_d)));
    const $(isa.vector) variance$(n) = $(isa.mul("square" .. n, isa.broadcast(one_over_d)));
    const $(isa.vector) padded$(n) = $(isa.add("variance" .. n, isa.broadcast(eps)));
    const $(isa.vector) gain$(n) = $(isa.reciprocal_root("padded" .. n));
//$ end

    for (size_t i = 0; i < $(shape.d) * $(tile); i += $(tile)) {
//$ for n = 0, vectors - 1 do
        const $(isa.vector) centred$(n) = $(isa.sub(isa.load("loaded", sum("i", n * isa.lanes)), "mean" .. n));
        const $(isa.vector) exact$(n) = $(isa.sub("centred" .. n, "shift" .. n));
        $(isa.store("loaded", sum("i", n * isa.lanes), isa.mul("exact" .. n, "gain" .. n)));
//$ end
    }
//$ end
}
