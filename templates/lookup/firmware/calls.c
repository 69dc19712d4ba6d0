//$ takes variants, input, output
void $(names.ffn)(const $(names.weights) *weights, const $(input) *x, $(output) *y, size_t tokens, void *scratch)
{
    $(variants[1].names.ffn)(weights, x, y, tokens, scratch);
}
