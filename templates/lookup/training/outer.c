//$ takes isa, helper, tile, x_pitch, turn_helper, outer_tiles, outer_blocks
//$ local lanes = isa.lanes
//$ if lanes > 1 then
$(include("templates/lookup/shared/transpose.c", { helper = turn_helper, columns = lanes, step = x_pitch }))
//$ end

/* $(tile) tokens in the lanes become tokens one after the other.
   x       [rows][$(tile)]
   turned  [$(tile)][$(x_pitch)], of which the first `rows` columns are written, and some behind them */
static void $(helper)_turn(const float *restrict x, size_t rows, float *restrict turned)
{
//$ if lanes > 1 then
    for (size_t first = 0; first < rows; $(advance("first", lanes))) {
        const float *row[$(lanes)];
        for (size_t lane = 0; lane < $(lanes); ++lane)
            row[lane] = x + (first + lane < rows ? first + lane : rows - 1) * $(tile);
//$ loop("token", 0, tile, lanes, function(token)
            $(turn_helper)_transpose(row, $(token), $(sum("turned", times(token, x_pitch), "first")));
//$ end)
    }
//$ else
    for (size_t row = 0; row < rows; ++row)
        for (size_t token = 0; token < $(tile); ++token)
            turned[token * $(x_pitch) + row] = x[row * $(tile) + token];
//$ end
}
//$ for _, t in ipairs(outer_tiles) do
//$ local function load(base, at, n) return n == lanes and isa.load_unaligned(base, at) or isa.load_partial(base, at, n) end
//$ local function each(f)
//$     for n = 0, t.vectors - 1 do f(n, n * lanes, lanes) end
//$     if t.partial > 0 then f(t.vectors, t.vectors * lanes, t.partial) end
//$ end

//$ local apart = t.outputs > 1 and ", `pitch` floats from output to output" or ""
/* Adds to $(t.outputs) by $(t.floats) sums$(apart): sums[o][i] += sum over the tokens of dy[o] x[i].
   dy  [$(t.outputs)][$(tile)], turned [$(tile)][$(x_pitch)] */
static inline void $(helper)_sum_$(t.name)(const float *restrict dy, const float *restrict turned,
    float *restrict sums$(t.outputs > 1 and ", size_t pitch" or ""))
{
//$ for o = 0, t.outputs - 1 do
//$ each(function(n, at, floats)
    $(isa.vector) sum$(o)_$(n) = $(load("sums", sum(times(o, "pitch"), at), floats));
//$ end)
//$ end
    for (size_t token = 0; token < $(tile); ++token, turned += $(x_pitch)) {
//$ each(function(n, at, floats)
        const $(isa.vector) x$(n) = $(load("turned", at, floats));
//$ end)
//$ for o = 0, t.outputs - 1 do
        const $(isa.vector) dy$(o) = $(isa.broadcast("dy[" .. sum(o * tile, "token") .. "]"));
//$ each(function(n)
        sum$(o)_$(n) = $(isa.fma("dy" .. o, "x" .. n, "sum" .. o .. "_" .. n));
//$ end)
//$ end
    }
//$ for o = 0, t.outputs - 1 do
//$ each(function(n, at, floats)
//$ local place = sum(times(o, "pitch"), at)
//$ local value = "sum" .. o .. "_" .. n
    $(floats == lanes and isa.store_unaligned("sums", place, value) or isa.store_partial("sums", place, floats, value));
//$ end)
//$ end
}
//$ end
//$ for _, block in ipairs(outer_blocks) do

/* Gradients of a block of $(plural(block.outputs, "output")) and $(plural(block.inputs, "input")),
   $(plural(block.pitch, "float")) from output to output. */
static void $(helper)_$(block.name)(const float *restrict dy, const float *restrict turned, float *restrict sums)
{
//$ for _, down in ipairs(block.down) do
//$ loop("o", down.at, down.at + down.count * down.step, down.step, function(o)
//$ for _, across in ipairs(block.across) do
//$ loop("x", across.at, across.at + across.count * across.step, across.step, function(x)
//$ local rows, sums = sum("dy", times(o, tile)), sum("sums", times(o, block.pitch), x)
            $(helper)_sum_$(down.step)x$(across.name)($(rows), $(sum("turned", x)), $(sums)$(down.step > 1 and ", " .. block.pitch or ""));
//$ end)
//$ end
//$ end)
//$ end
}
//$ end
