//$ takes isas, variants, input, output
$(include("templates/bundle/bind.c"))

void $(names.ffn)(const $(names.weights) *weights, const $(input) *x, $(output) *y, size_t tokens, void *scratch)
{
//$ if #isas > 1 then
    switch (weights->isa) {
//$ for i = #variants, 2, -1 do
    case $(i - 1): $(variants[i].names.ffn)(weights, x, y, tokens, scratch); break;
//$ end
    default: $(variants[1].names.ffn)(weights, x, y, tokens, scratch); break;
    }
//$ else
    $(variants[1].names.ffn)(weights, x, y, tokens, scratch);
//$ end
}
