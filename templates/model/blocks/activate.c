//$ takes isa, lanes, helper, activated, step, round
//$ -- The hidden values of a dense FFN. round: the function that rounds a row of them, or false.

//$ local product = shape.gated and "(gate) hidden" or "(hidden)"
/* hidden = activation$(product), row by row$(round and ", and rounded" or ""). */
static void $(helper)_activate(const $(names.type("buffers")) *b, size_t tokens)
{
    for (size_t token = 0; token < tokens; ++token) {
        const float *gate = b->gate.at + token * b->gate.step; //$ if shape.gated
        float *hidden = b->hidden.at + token * b->hidden.step;

//$ loop("i", 0, shape.f, lanes, function(at)
//$ if shape.gated then
            const $(isa.vector) x = $(isa.load_unaligned("gate", at));
            const $(isa.vector) open = $(activated)(x);
            const $(isa.vector) value = $(isa.load_unaligned("hidden", at));
            $(isa.store_unaligned("hidden", at, isa.mul("open", "value")));
//$ else
            const $(isa.vector) x = $(isa.load_unaligned("hidden", at));
            $(isa.store_unaligned("hidden", at, activated .. "(x)"));
//$ end
//$ end)
//$ if round then
//$ local to = "b->" .. step.rounded
        $(round)(hidden, b->hidden.step, $(to).at + token * $(to).step, $(to).step, 1);
//$ end
    }
}
