//$ takes variants
$(include("templates/bundle/bind.c"))

void $(names.ffn)(const $(names.weights) *weights, const int16_t *x, int32_t *y, size_t tokens, void *scratch)
{
    $(variants[1].names.ffn)(weights, x, y, tokens, scratch);
}
