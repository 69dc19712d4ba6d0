//$ takes lanes, aligned_floats, bits_floats
//$ -- Where the bits of tables in the lanes lie: those of a table side by side, then bit after bit.
    const float *row[$(lanes)];
    float buffer[$(aligned_floats)]; /* [$(shape.tau)][$(lanes)] and room for alignment */ //$ if aligned_floats
    float *bits = buffer + (64 - (uintptr_t) buffer % 64) / sizeof(float); //$ if aligned_floats
    float bits[$(bits_floats)]; /* [$(shape.tau)][$(lanes)] */ //$ if not aligned_floats
