//$ takes isa, layernorm, factors, gains, width, eps
//$ -- Norms the row x, with sums in float32 that keep what rounding takes from them.
//$ local add = once("templates/math/sum.c") .. "_add"
        float squares = 0.0f, squares_lost = 0.0f;
//$ if layernorm then
        float mean = 0.0f, rests = 0.0f, rests_lost = 0.0f;
        for (size_t i = 0; i < $(width); ++i)
            mean += x[i];
        mean /= $(width).0f;
        for (size_t i = 0; i < $(width); ++i) {
            const float rest = x[i] - mean;
            rests = $(add)(rests, rest, &rests_lost);
            squares = $(add)(squares, rest * rest, &squares_lost);
        }
        const float shift = rests / $(width).0f;
        const float padded = squares / $(width).0f - shift * shift + $(eps);
//$ else
        for (size_t i = 0; i < $(width); ++i)
            squares = $(add)(squares, x[i] * x[i], &squares_lost);
        const float padded = squares / $(width).0f + $(eps);
//$ end
//$ local factor = first_lane("factor", isa.reciprocal_root(isa.broadcast("padded")))
//$ if factors then
        *y = $(factor);
//$ else
        for (size_t i = 0; i < $(width); ++i)
            y[i] = (x[i] - mean - shift) * $(factor) * gain[i] + offset[i]; //$ if layernorm
            y[i] = x[i] * $(factor)$(gains and " * gain[i]" or ""); //$ if not layernorm
//$ end
