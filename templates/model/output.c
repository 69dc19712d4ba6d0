//$ takes isa, lanes, helper, panel, output, float, float_sums, calls, maps, output_parameters
//$ local source, step, width = "x", output.width, output.width

/* From rows of the last block$(output.pool and ", pooled," or "") to results: x[rows][$(output.width)] is
   $(output.norm and not output.pool and "normalised in place" or "read"), y[rows][$(output.out)] written. */
static void $(helper)_output(const $(names.weights) *weights,
    $(output.norm and not output.pool and "" or "const ")float *x, size_t rows, float *y$(output_parameters))
{
//$ local uses_weights = output.norm and not output.pool or output.dense or output.head
    (void) weights; //$ if not uses_weights
//$ if output.norm and not output.pool then
//$ local norm = calls.norms.output
    $(norm.name)(x, $(output.width), $(norm.weights), x, $(output.width), rows);
//$ end
//$ if output.dense then
//$ local dense = output.dense
$(include("templates/model/map_rows.c", { of = maps.dense, rows = "rows" }))
//$ if dense.activation then
    for (size_t i = 0; i < rows * $(dense.pitch); $(advance("i", lanes))) {
        const $(isa.vector) value = $(isa.load_unaligned("features", "i"));
        $(isa.store_unaligned("features", "i", calls.activation .. "(value)"));
    }
//$ end
//$ if dense.norm then
//$ local norm = calls.norms.dense
    $(norm.name)(features, $(dense.pitch), $(norm.weights), features, $(dense.pitch), rows);
//$ end
//$ source, step, width = "features", dense.pitch, dense.outputs
//$ end
//$ if output.head then
//$ local head = output.head
//$ local panels, rest = head.outputs // panel, head.outputs % panel
$(include("templates/model/map_rows.c", { of = maps.head, rows = "rows" }))
//$ if rest > 0 then
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
    for (size_t row = 0; row < rows; ++row)
        for (size_t i = 0; i < $(rest); ++i)
            y[$(sum(times("row", names.macro("D_OUT")), panels > 0 and names.macro("HEAD_REST") or 0, "i"))] = one * rest[row * $(panel) + i];
//$ end
//$ if output.soft_cap then
//$ local whole_vectors, some = head.outputs // lanes * lanes, head.outputs % lanes
//$ local function capped(value)
//$     local share = isa.mul(value, isa.broadcast(float(1 / output.soft_cap)))
//$     return isa.mul(calls.tanh .. "(" .. share .. ")", isa.broadcast(float(output.soft_cap)))
//$ end
    for (size_t row = 0; row < rows; ++row) {
        float *logits = y + row * $(head.outputs);
//$ if whole_vectors > 0 then
        for (size_t i = 0; i < $(whole_vectors); $(advance("i", lanes))) {
            const $(isa.vector) logit = $(isa.load_unaligned("logits", "i"));
            $(isa.store_unaligned("logits", "i", capped("logit")));
        }
//$ end
//$ if some > 0 then
        const $(isa.vector) logit = $(isa.load_partial("logits", whole_vectors, some));
        $(isa.store_partial("logits", whole_vectors, some, capped("logit")));
//$ end
    }
//$ end
//$ else
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
    for (size_t row = 0; row < rows; ++row) {
        const float *from = $(source) + $(times("row", step));
        float *to = y + $(times("row", width));
//$ if output.unit then
//$ if float_sums then
        float square = 0.0f, lost = 0.0f;
        for (size_t i = 0; i < $(width); ++i)
            square = $(calls.add)(square, from[i] * from[i], &lost);
//$ else
        double square = 0.0;
        for (size_t i = 0; i < $(width); ++i)
            square += (double) from[i] * (double) from[i];
//$ end
        /* what is shorter than that has no direction */
        const float length = square > $(float_sums and "1e-30f ? square" or "1e-30 ? (float) square") : 1.0f;
//$ local factor = first_lane("factor", isa.mul(isa.broadcast("one"), isa.reciprocal_root(isa.broadcast("length"))))
        for (size_t i = 0; i < $(width); ++i)
            to[i] = $(factor) * from[i];
//$ else
        for (size_t i = 0; i < $(width); ++i)
            to[i] = one * from[i];
//$ end
    }
//$ end
}
