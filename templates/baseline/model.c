//$ takes input, output
$(include("templates/bundle/bind.c"))

void $(names.ffn)(const $(names.weights) *weights, const $(input) *x, $(output) *y, size_t tokens, void *scratch)
{
//$ local function call(v) return v.names.ffn .. "(weights, x, y, tokens, scratch)" end
$(include("templates/bundle/by_isa.c", { call = call }))
}
