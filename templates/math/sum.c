//$ takes helper

/* Adds x to a sum of floats; `lost` carries on what rounding loses (Kahan). The sum of any number of floats is then
   off by at most 2^-23 of the
   sum of their magnitudes. */
static inline float $(helper)_add(float sum, float x, float *lost)
{
    const float owed = x - *lost, next = sum + owed;
    *lost = (next - sum) - owed;
    return next;
}
