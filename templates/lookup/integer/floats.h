//$ takes
#ifdef $(names.macro("FLOATS"))
/* For hosts that have floats: define $(names.macro("FLOATS")) before this header is included. */

/* x in units of $(names.macro("X_SCALE")), the nearest one that int16_t has; 0 for NaN. */
static inline int16_t $(model)_from_float(float x)
{
    const float units = x / $(names.macro("X_SCALE"));
    if (!(units > -32768.0f))
        return (int16_t) (units <= -32768.0f ? -32768 : 0);
    if (units > 32767.0f)
        return 32767;
    return (int16_t) (units < 0.0f ? units - 0.5f : units + 0.5f);
}

static inline float $(model)_to_float(int32_t y)
{
    return (float) y * $(names.macro("Y_SCALE"));
}
#endif
