//$ takes isa, layernorm, factors, gains, width, eps
//$ -- Norms the row x, of which there is one, with sums in float64.
//$ local share = ("%.17g"):format(1 / width)
        double square = 0.0;
//$ if layernorm then
        double mean = 0.0;
        for (size_t i = 0; i < $(width); ++i)
            mean += (double) x[i];
        mean *= $(share);
        for (size_t i = 0; i < $(width); ++i)
            square += ((double) x[i] - mean) * ((double) x[i] - mean);
//$ else
        for (size_t i = 0; i < $(width); ++i)
            square += (double) x[i] * (double) x[i];
//$ end
        const float padded = (float) (square * $(share)) + $(eps);
//$ local factor = first_lane("factor", isa.reciprocal_root(isa.broadcast("padded")))
//$ if factors then
        *y = $(factor);
//$ else
        for (size_t i = 0; i < $(width); ++i)
            y[i] = (float) ((double) x[i] - mean) * $(factor) * gain[i] + offset[i]; //$ if layernorm
            y[i] = x[i] * $(factor)$(gains and " * gain[i]" or ""); //$ if not layernorm
//$ end
