//$ takes openmp, input, output
$(include("templates/bundle/bind.c"))
//$ if openmp then

#ifdef $(names.macro("OPENMP"))
void $(names.split)(void ffn(const $(names.weights) *, const float *, float *, size_t, void *), size_t tile, size_t min,
    const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch)
{
    const size_t worthwhile = tokens / min, ranges = worthwhile < $(names.macro("OPENMP")) ? worthwhile : $(names.macro("OPENMP"));
    const size_t tiles = (tokens + tile - 1) / tile;

    if (ranges < 2) {
        ffn(weights, x, y, tokens, scratch);
        return;
    }
#pragma omp parallel for num_threads((int) ranges) schedule(static, 1)
    for (size_t range = 0; range < ranges; ++range) {
        const size_t first = range * tiles / ranges * tile, next = (range + 1) * tiles / ranges * tile;
        ffn(weights, x + first * $(shape.d), y + first * $(shape.d_out), (next < tokens ? next : tokens) - first,
            (unsigned char *) scratch + range * $(names.macro("THREAD_SCRATCH_BYTES")));
    }
}
#endif
//$ end

void $(names.ffn)(const $(names.weights) *weights, const $(input) *x, $(output) *y, size_t tokens, void *scratch)
{
//$ local function call(v) return v.names.ffn .. "(weights, x, y, tokens, scratch)" end
$(include("templates/bundle/by_isa.c", { call = call }))
}
