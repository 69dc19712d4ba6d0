//$ takes firmware, causal, compared, each, stride, rows, ids, offsets
#include "$(model)_selftest.h"

#include "$(names.header)"

//$ local tolerances = {}
//$ for _, vector in ipairs(firmware.vectors) do
//$     for _, row in ipairs(vector.rows) do tolerances[#tolerances + 1] = firmware.tolerance_of(row) end
//$ end
enum {
    sequences = $(#firmware.vectors),
    rows = $(#tolerances),
    values = $(each), /* of a row$(stride > 1 and ", of " .. shape.d_out .. ": every " .. stride .. "th" or "") */
    compared = $(compared)
};

static const int32_t ids[$(#ids)] = {
//$ lines(firmware.number_lines(ids))
};

/* Sequence s has the ids number offsets[s] … offsets[s + 1] - 1. */
static const size_t offsets[sequences + 1] = {
//$ lines(firmware.number_lines(offsets))
};

static const float expected[rows][values] = {
//$ for _, vector in ipairs(firmware.vectors) do
//$ for _, row in ipairs(vector.rows) do
    {
//$ local some = {}
//$ for i = 1, #row, stride do some[#some + 1] = row[i] end
//$ lines(firmware.number_lines(some))
    },
//$ end
//$ end
};

/* How much a value of a row may differ: $(firmware.tolerance) of the norm of the row. */
static const float tolerances[rows] = {
//$ lines(firmware.number_lines(tolerances))
};

static float output[$(rows > 1 and rows .. " * " or "")$(names.macro("D_OUT"))];

/* How many of the values of row `row` are not what they should be in `found`. */
static unsigned differing(const float *found, size_t row)
{
    unsigned wrong = 0;

    for (size_t i = 0; i < values; ++i) {
        const float difference = found[i$(stride > 1 and " * " .. stride or "")] - expected[row][i];
        if (!(difference <= tolerances[row] && -difference <= tolerances[row])) /* NaN is wrong */
            ++wrong;
    }
    return wrong;
}

unsigned $(names.selftest)($(causal and "void *state, " or "")void *scratch)
{
    $(names.weights) weights;
    unsigned wrong = 0;
    size_t row = 0; //$ if not causal

    if ($(names.bind_linked)(&weights) != $(names.macro("OK")))
        return compared;
    for (size_t s = 0; s < sequences; ++s) {
        const int32_t *own = ids + offsets[s];
        const size_t n = offsets[s + 1] - offsets[s];
//$ if causal then
        int status;

        $(names.start)(state);
        status = $(names.prefill)(&weights, state, own, n, output, scratch);
        wrong += status == $(names.macro("OK")) ? differing(output, s) : (unsigned) values;
        $(names.start)(state);
        for (size_t i = 0; i < n && status == $(names.macro("OK")); ++i)
            status = $(names.step)(&weights, state, own[i], output, scratch);
        wrong += status == $(names.macro("OK")) ? differing(output, s) : (unsigned) values;
//$ else
        const size_t results = $(rows > 1 and "n" or "1");
        const int status = $(names.encode)(&weights, own, n, output, scratch);

        for (size_t i = 0; i < results; ++i, ++row)
            wrong += status == $(names.macro("OK")) ? differing(output + i * $(names.macro("D_OUT")), row) : (unsigned) values;
//$ end
    }
    return wrong;
}
