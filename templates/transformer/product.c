//$ lines("", prologue)
//$ local function accumulator(t, n) return "y" .. t .. "_" .. n end
//$ local function times(n, step) return n == 1 and step or n .. " * " .. step end
//$ -- One input: a strip of `vectors` vectors of weights at `w + at`, of `tokens` tokens.
//$ local function add_input(i, tokens, vectors, row, at, name)
//$     for n = 0, vectors - 1 do
$(i)const $(isa.vector) w$(n) = $(unpacks and isa.load_unaligned("w", sum(at, n * lanes)) or load_weights(sum(at, n * lanes)));
//$     end
//$     for t = 0, tokens - 1 do
$(i)const $(isa.vector) x$(t) = $(isa.broadcast("x[" .. (t == 0 and row or times(t, "x_step") .. " + " .. row) .. "]"));
//$         for n = 0, vectors - 1 do
$(i)$(name(t, n)) = $(isa.fma("x" .. t, "w" .. n, name(t, n)));
//$         end
//$     end
//$ end
//$ if unpacks then
/* A strip of $(strip) outputs of a panel, all its inputs, as floats. */
static inline void $(helper)_unpack(const $(type.storage) *restrict w, size_t inputs, float *restrict unpacked)
{
    for (size_t row = 0; row < inputs; ++row, w += $(panel), unpacked += $(strip)) {
//$ for n = 0, strip_vectors - 1 do
        $(isa.store_unaligned("unpacked", n * lanes, load_weights(n * lanes)));
//$ end
    }
}
//$ end
//$ for _, tokens in ipairs(together) do

/* $(strip) outputs of $(tokens > 1 and tokens .. " tokens" or "a token"), a strip of a panel: y += W x, or y = W x for the first inputs. */
static inline void $(helper)_of_$(tokens)(const float *restrict x, $(tokens > 1 and "size_t x_step, " or "")const $(unpacks and "float" or type.storage) *restrict w, size_t inputs,
    float *restrict y, $(tokens > 1 and "size_t y_step, " or "")int first)
{
//$ for t = 0, tokens - 1 do
//$ for n = 0, strip_vectors - 1 do
    $(isa.vector) $(accumulator(t, n)) = first ? $(isa.zero()) : $(isa.load_unaligned("y", t == 0 and n * lanes or sum(times(t, "y_step"), n * lanes)));
//$ end
//$ end

    for (size_t row = 0; row < inputs; ++row, w += $(unpacks and strip or panel)) {
//$ add_input("        ", tokens, strip_vectors, "row", 0, accumulator)
    }

//$ for t = 0, tokens - 1 do
//$ for n = 0, strip_vectors - 1 do
    $(isa.store_unaligned("y", t == 0 and n * lanes or sum(times(t, "y_step"), n * lanes), accumulator(t, n)));
//$ end
//$ end
}
//$ end

//$ local function partial(s, u, n) return "y" .. s .. "_" .. u .. "_" .. n end
//$ for _, streams in ipairs(read_together) do
//$ local indent = unroll > 1 and "            " or "        "
//$ local function add_inputs(u, i)
$(i)const $(isa.vector) x$(u) = $(isa.broadcast("x[" .. sum("row", u) .. "]"));
//$     for s = 0, streams - 1 do
//$     for n = 0, alone_vectors - 1 do
$(i)const $(isa.vector) w$(s)_$(n) = $(load_weights(s == 0 and u * panel + n * lanes or sum(times(s, "apart"), u * panel + n * lanes)));
$(i)$(partial(s, u, n)) = $(isa.fma("x" .. u, "w" .. s .. "_" .. n, partial(s, u, n)));
//$     end
//$     end
//$ end

//$ if streams > 1 then
/* $(alone_outputs) outputs of each of $(streams) panels, `apart` weights and `y_apart` outputs from each other, of one token: y = W x. Weights are read once,
   from memory, which gives more to several streams. */
static inline void $(helper)_alone_$(streams)(const float *restrict x, const $(type.storage) *restrict w, size_t apart, size_t inputs, float *restrict y, size_t y_apart)
//$ else
/* $(alone_outputs) outputs of one token: y = W x. */
static inline void $(helper)_alone(const float *restrict x, const $(type.storage) *restrict w, size_t inputs, float *restrict y)
//$ end
{
//$ for s = 0, streams - 1 do
//$ for u = 0, unroll - 1 do
//$ for n = 0, alone_vectors - 1 do
    $(isa.vector) $(partial(s, u, n)) = $(isa.zero());
//$ end
//$ end
//$ end
//$ if unroll > 1 then
    size_t row = 0;
//$ end

//$ if unroll > 1 then
    for (; row + $(unroll) <= inputs; row += $(unroll), w += $(unroll * panel)) {
//$ else
    for (size_t row = 0; row < inputs; ++row, w += $(panel)) {
//$ end
//$ if ahead then
//$ for s = 0, streams - 1 do
//$ for line = 0, unroll * panel * type.bytes - 1, 64 do
        $(isa.prefetch_l1(s == 0 and "(const char *) w" or "(const char *) (w + " .. times(s, "apart") .. ")", ahead + line));
//$ end
//$ end
//$ end
//$ for u = 0, unroll - 1 do
//$ if unroll > 1 then
        {
//$ end
//$ add_inputs(u, indent)
//$ if unroll > 1 then
        }
//$ end
//$ end
    }
//$ if unroll > 1 then
    for (; row < inputs; ++row, w += $(panel)) {
//$ add_inputs(0, "        ")
    }
//$ end
//$ for s = 0, streams - 1 do
//$ local step = 1
//$ while step < unroll do
//$ for u = 0, unroll - 1, 2 * step do
//$ for n = 0, alone_vectors - 1 do
    $(partial(s, u, n)) = $(isa.add(partial(s, u, n), partial(s, u + step, n)));
//$ end
//$ end
//$ step = 2 * step
//$ end
//$ for n = 0, alone_vectors - 1 do
    $(isa.store_unaligned("y", s == 0 and n * lanes or sum(times(s, "y_apart"), n * lanes), partial(s, 0, n)));
//$ end
//$ end
}
//$ end

/* A dense product for some tokens: y = W x + bias.
   x      rows of `inputs` floats, x_step apart
   w      [panels][inputs][$(panel) outputs]
//$ if type.scaled then
   scale  [panels * $(panel)] of the rows of W
//$ end
   bias   [panels * $(panel)]
   y      rows of panels * $(panel) floats, y_step apart
//$ if unpacks then
   unpacked  $(depth * strip) floats for several tokens, overwritten
//$ end
   Nothing may overlap; any float alignment. Cannot fail. */
void $(symbol)(const float *restrict x, size_t x_step, const $(type.storage) *restrict w, $(type.scaled and "const float *restrict scale, " or "")const float *restrict bias,
    float *restrict y, size_t y_step, size_t inputs, size_t panels, size_t tokens$(unpacks and ", float *restrict unpacked" or ""))
{
    if (tokens == 1) {
//$ local function call(i, streams, output)
//$     local from, to = "w + panel * inputs * " .. panel, "y + panel * " .. panel
//$     if alone_outputs < panel then
$(i)for (size_t at = 0; at < $(panel); at += $(alone_outputs))
//$         from, to, i = from .. " + at", to .. " + at", i .. "    "
//$     end
//$     if streams > 1 then
$(i)$(helper)_alone_$(streams)(x, $(from), each * inputs * $(panel), inputs, $(to), each * $(panel));
//$     else
$(i)$(helper)_alone(x, $(from), inputs, $(to));
//$     end
//$ end
//$ if #read_together > 1 then
        const size_t each = panels / $(read_together[1]);
        for (size_t panel = 0; panel < each; ++panel)
//$ call("            ", read_together[1])
        for (size_t panel = $(read_together[1]) * each; panel < panels; ++panel)
//$ else
        for (size_t panel = 0; panel < panels; ++panel)
//$ end
//$ call("            ", 1)
    } else {
        for (size_t row = 0; row < inputs; row += $(depth)) {
            const size_t rows = inputs - row < $(depth) ? inputs - row : $(depth);
            for (size_t output = 0; output < panels * $(panel); output += $(strip)) {
                const $(type.storage) *strip = w + (output / $(panel) * inputs + row) * $(panel) + output % $(panel);
                size_t token = 0;
//$ if unpacks then
                $(helper)_unpack(strip, rows, unpacked);
//$ end
//$ for _, count in ipairs(together) do
                for (; token + $(count) <= tokens; token += $(count))
                    $(helper)_of_$(count)(x + token * x_step + row, $(count > 1 and "x_step, " or "")$(unpacks and "unpacked" or "strip"), rows, y + token * y_step + output, $(count > 1 and "y_step, " or "")row == 0);
//$ end
            }
        }
    }
    for (size_t token = 0; token < tokens; ++token, y += y_step)
        for (size_t output = 0; output < panels * $(panel); output += $(lanes)) {
            const $(isa.vector) sums = $(isa.load_unaligned("y", "output"));
            const $(isa.vector) offsets = $(isa.load_unaligned("bias", "output"));
//$ if type.scaled then
            const $(isa.vector) scales = $(isa.load_unaligned("scale", "output"));
            $(isa.store_unaligned("y", "output", isa.fma("sums", "scales", "offsets")));
//$ else
            $(isa.store_unaligned("y", "output", isa.add("sums", "offsets")));
//$ end
        }
}
