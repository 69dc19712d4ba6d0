//$ takes helper, lanes, isa, output, threads, sums_tokens, calls, maps, buffers
//$ takes output_arguments, memory_parameters, memory_arguments
//$ local macro = names.macro
//$ local const = output.norm and not output.pool and "" or "const "
//$ local takes_rows = "const " .. names.weights .. " *weights, " .. const .. "float *x, "
//$ takes_rows = takes_rows .. (output.pool and "const size_t *offsets, " or "")

//$ local of_x = output.sums and "sums" or output.pool and "tokens"
//$ of_x = of_x and "x has the " .. of_x .. " of sequences 0 …" or "x[rows][" .. output.width .. "]"
/* Results of rows number `from` to `end`, $(macro("RESULTS")) at a time: $(of_x),
   y[rows][$(output.out)].$(const == "" and " Rows of x are normalised in place." or "") */
static void $(helper)_results($(takes_rows)size_t from, size_t end, float *y$(memory_parameters))
{
    $(buffer.type)$(buffer.name) = ($(buffer.type)) (void *) ($(buffer.place)); //$ for _, buffer in ipairs(buffers.last)
//$ local sums = output.sums
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */ //$ if sums and not sums.map
//$ if buffers.last[1] then

//$ end
    for (size_t row = from, next; row < end; row = next) {
        const size_t last = row - row % $(macro("RESULTS")) + $(macro("RESULTS"));
        next = last < end ? last : end;
//$ if sums then
        for (size_t own = row; own < next; ++own) {
            const size_t at = offsets[own] - offsets[0], count = offsets[own + 1] - offsets[own];
            const size_t first = own + at / $(sums_tokens), behind = own + (at + count - 1) / $(sums_tokens) + 1; /* rows of its sums */

            $(helper)_pool(x + first * $(sums.pitch), behind - first, count, pooled + (own - row) * $(sums.pitch));
        }
//$ if sums.map then
        /* what the last block's last map makes of means is the mean of what it would make of all tokens */
$(include("templates/model/map_rows.c", { of = maps.means, rows = "next - row", calls = calls }))
//$ end
        for (size_t own = row; own < next; ++own) {
//$ local mapped = sums.map and ", *mapped = mapped_means + (own - row) * " .. sums.map.pitch or ""
            const float *mean = pooled + (own - row) * $(sums.pitch)$(mapped);
            float *to = pooled + $(times("(own - row)", output.width));
//$ local value = sums.map and "mean[i] + mapped[i]" or "one * mean[i]"
//$ if output.pool == "sqrt_n" then
//$ value = "root * (" .. value .. ")"
            const float count = (float) (offsets[own + 1] - offsets[own]);
            float factors[$(lanes)];
            $(isa.store_unaligned("factors", 0, isa.reciprocal_root(isa.broadcast("count"))));
            const float root = count * factors[0];
//$ end

            for (size_t i = 0; i < $(output.width); ++i)
                to[i] = $(value);
        }
        $(helper)_output(weights, pooled, next - row, y + row * $(macro("D_OUT"))$(output_arguments));
//$ elseif output.pool then
        for (size_t own = row; own < next; ++own)
            $(helper)_pool(x + $(times("(offsets[own] - offsets[0])", output.width)), offsets[own + 1] - offsets[own],
                pooled + $(times("(own - row)", output.width)));
        $(helper)_output(weights, pooled, next - row, y + row * $(macro("D_OUT"))$(output_arguments));
//$ else
        $(helper)_output(weights, x + $(times("row", output.width)), next - row, y + row * $(macro("D_OUT"))$(output_arguments));
//$ end
    }
}
//$ local gives_rows = "weights, x, " .. (output.pool and "offsets, " or "")
//$ if threads then

/* The same for all rows, which threads share. */
static void $(helper)_all_results($(takes_rows)size_t rows, float *y$(memory_parameters))
{
#ifdef $(macro("OPENMP"))
//$ local function range_at(n)
//$     return threads.range .. "(" .. listed("rows", macro("RESULTS"), macro("RESULTS_PART"), n, "ranges") .. ")"
//$ end
    const size_t ranges = $(threads.ranges)(rows, $(macro("RESULTS")), $(macro("RESULTS_PART")));
#pragma omp parallel for num_threads((int) ranges) schedule(static, 1)
    for (size_t range = 0; range < ranges; ++range)
        $(helper)_results($(gives_rows)$(range_at("range")), $(range_at("range + 1")),
            y$(memory_arguments("memory + range * " .. macro("THREAD_SCRATCH_BYTES"))));
#else
    $(helper)_results($(gives_rows)0, rows, y$(memory_arguments("memory")));
#endif
}
//$ end
