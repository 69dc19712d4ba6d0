//$ takes constants, variants, norm, integer, input, output
$(include("templates/bundle/constants.h", { constants = constants }))
//$ for _, v in ipairs(variants) do

//$ if norm then
void $(v.names.normalise)(const $(input) *restrict x, $(input) *restrict normalised);
//$ end
//$ if integer then
void $(v.names.first)(const $(names.weights) *weights, const int16_t *restrict x, int32_t *restrict z);
void $(v.names.second)(const $(names.weights) *weights, const int16_t *restrict x, int32_t *restrict z);
//$ else
void $(v.names.product)(const float *restrict x, size_t x_step, const float *restrict w, const float *restrict bias,
    float *restrict y, size_t y_step, size_t inputs, size_t panels, size_t tokens);
//$ end
void $(v.names.ffn)(const $(names.weights) *weights, const $(input) *x, $(output) *y, size_t tokens, void *scratch);
//$ end
