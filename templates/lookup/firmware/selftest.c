//$ takes firmware
#include "$(model)_selftest.h"

#include "$(names.header)"

enum { tokens = $(#firmware.vectors) };

static const $(firmware.input) input[tokens][$(names.macro("D"))] = {
//$ for _, vector in ipairs(firmware.vectors) do
    {
//$ lines(firmware.number_lines(vector.x))
    },
//$ end
};

static const $(firmware.output) expected[tokens][$(names.macro("D_OUT"))] = {
//$ for _, vector in ipairs(firmware.vectors) do
    {
//$ lines(firmware.number_lines(vector.y))
    },
//$ end
};

//$ if not firmware.exact then
/* How much an output may differ: $(firmware.tolerance) of the norm of its token's outputs. */
static const float tolerances[tokens] = {
//$ local tolerances = {}
//$ for i, vector in ipairs(firmware.vectors) do tolerances[i] = firmware.tolerance_of(vector.y) end
//$ lines(firmware.number_lines(tolerances))
};

//$ end
static $(firmware.output) output[$(names.macro("D_OUT"))];

unsigned $(names.selftest)(void *scratch)
{
    $(names.weights) weights;
    unsigned wrong = 0;

    if ($(names.bind_linked)(&weights) != $(names.macro("OK")))
        return tokens * $(names.macro("D_OUT"));
    for (size_t token = 0; token < tokens; ++token) {
        $(names.ffn)(&weights, input[token], output, 1, scratch);
        for (size_t i = 0; i < $(names.macro("D_OUT")); ++i) {
//$ if firmware.exact then
            if (output[i] != expected[token][i])
                ++wrong;
//$ else
            const float difference = output[i] - expected[token][i];
            if (!(difference <= tolerances[token] && -difference <= tolerances[token])) /* NaN is wrong */
                ++wrong;
//$ end
        }
    }
    return wrong;
}
