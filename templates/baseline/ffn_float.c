//$ takes prologue, isa, v, symbol, norm, panel, lanes, activation, in_scratch
//$ lines("", prologue)
//$ local activated = once("templates/math/activation.c", { activation = activation }) .. "_" .. activation

/* The dense FFN, token by token; see $(names.header). */
void $(symbol)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch)
{
//$ for _, buffer in ipairs(v.buffers) do
//$ if buffer.bytes > 0 then
    float *$(buffer.name) = $(in_scratch(buffer.name, "float"));
//$ end
//$ end

    for (size_t token = 0; token < tokens; ++token, x += $(shape.d), y += $(shape.d_out)) {
//$ if norm then
        $(v.names.normalise)(x, normalised);
//$ end
        $(v.names.product)($(norm and "normalised" or "x"), $(shape.d), weights->first, weights->first_bias, hidden, $(shape.hidden), $(shape.d), $(shape.hidden // panel), 1);
        for (size_t i = 0; i < $(shape.hidden); $(advance("i", lanes))) {
            const $(isa.vector) value = $(isa.load_unaligned("hidden", "i"));
            $(isa.store_unaligned("hidden", "i", activated .. "(value)"));
        }
        $(v.names.product)(hidden, $(shape.hidden), weights->second, weights->second_bias, y, $(shape.d_out), $(shape.hidden), $(shape.d_out // panel), 1);
    }
}
