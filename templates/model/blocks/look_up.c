//$ takes helper, parts, looks_up, structs
//$ -- The LookupFFN of a layer. parts: of the FFN of a block; the first layers have the first one's shape.
//$ local several, counts = #parts > 1, false
//$ for _, part in ipairs(parts) do
//$     local _, kernels = looks_up(part)
//$     counts = counts or kernels.threshold ~= nil
//$ end

/* A layer's LookupFFN of some tokens$(counts and "; together: tokens of their chunk, which choose the kernel" or ""). */
static void $(helper)_look_up(const $(names.type("layer")) *layer, const float *x, float *y, size_t tokens$(counts and ", size_t together" or ""),
    void *scratch)
{
    $(structs.lookup) weights;

    $(helper)_lookup_at(layer, &weights);
//$ for n, part in ipairs(parts) do
//$ local doc, kernels = looks_up(part)
    $(n == 1 and "if (layer->number < " .. part.count .. ") {" or "} else {") //$ if several
    /* $(doc) */
    if (together <= $(kernels.threshold)) //$ if kernels.threshold
        $(kernels.few)(&weights, x, y, tokens, scratch); //$ if kernels.threshold
    else //$ if kernels.threshold
        $(kernels.many)(&weights, x, y, tokens, scratch);
//$ end
    } //$ if several
}
