//$ takes helper, lanes, isa, output, has, place, threads, sums_tokens, calls
//$ local macro = names.macro
//$ local output_arguments = ""
//$ for _, name in ipairs(calls.output_buffers) do output_arguments = output_arguments .. ", " .. calls.buffer_name(name) end
//$ local const = output.norm and not output.pool and "" or "const "
//$ local takes_rows = "const " .. names.weights .. " *weights, " .. const .. "float *x, "
//$ takes_rows = takes_rows .. (output.pool and "const size_t *offsets, " or "")
//$ local takes_memory = (calls.uses_memory and ", unsigned char *memory" or "") .. (calls.asks_alone and ", int alone" or "")

//$ local of_x = output.sums and "sums" or output.pool and "tokens"
//$ of_x = of_x and "x has the " .. of_x .. " of sequences 0 …" or "x[rows][" .. output.width .. "]"
/* Results of rows number `from` to `end`, $(macro("RESULTS")) at a time: $(of_x),
   y[rows][$(output.out)].$(const == "" and " Rows of x are normalised in place." or "") */
static void $(helper)_results($(takes_rows)size_t from, size_t end, float *y$(takes_memory))
{
//$ local used = { "pooled", "mapped_means", "means_weights", "means_rounded", "features", "rest", "weights", "rounded" }
//$ lines(calls.buffers(used))
//$ local sums = output.sums
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */ //$ if sums and not sums.map
//$ if calls.uses_memory then

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
//$ local map, hidden = sums.map, "pooled + " .. sums.hidden
//$ local unpacked = has("means_weights") and "next - row > 1 ? means_weights : NULL" or "NULL"
//$ lines(calls.round(map, hidden, sums.pitch, "means_rounded", "next - row"))
//$ local inputs, inputs_step = calls.inputs(map, hidden, sums.pitch, "means_rounded")
        $(calls.product(calls.word(map), inputs, inputs_step, "mapped_means", map.pitch, "next - row", unpacked))
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
static void $(helper)_all_results($(takes_rows)size_t rows, float *y$(takes_memory))
{
#ifdef $(macro("OPENMP"))
//$ local function range_at(n)
//$     return threads.range .. "(" .. listed("rows", macro("RESULTS"), macro("RESULTS_PART"), n, "ranges") .. ")"
//$ end
    const size_t ranges = $(threads.ranges)(rows, $(macro("RESULTS")), $(macro("RESULTS_PART")));
#pragma omp parallel for num_threads((int) ranges) schedule(static, 1)
    for (size_t range = 0; range < ranges; ++range)
        $(helper)_results($(gives_rows)$(range_at("range")), $(range_at("range + 1")),
            y$(calls.memory("memory + range * " .. macro("THREAD_SCRATCH_BYTES"))));
#else
    $(helper)_results($(gives_rows)0, rows, y$(calls.memory("memory")));
#endif
}
//$ end
