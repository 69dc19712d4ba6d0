//$ takes helper, rope, width, in_place
//$ -- Rotates heads of `width`; in_place: they may be rotated where they are.
//$ local pairs, rotated = rope.half, 2 * rope.half
//$ local function pair(i)
//$     if rope.interleaved then return times(i, 2), sum(times(i, 2), 1) end
//$     return i, sum(i, pairs)
//$ end

/* One head of a query or key, its $(rotated == width and "" or "first " .. rotated .. " ")elements
   $(rope.interleaved and "2i and 2i + 1" or "i and i + " .. pairs) rotated by the angles of its
   position, times `factor`. */
//$ local apart = in_place and "" or "restrict "
static void $(helper)_rotate_$(width)(const float *$(apart)from, const float *restrict cosine, const float *restrict sine,
    float factor, float *$(apart)to)
{
//$ loop("i", 0, pairs, 1, function(i)
//$ local first, second = pair(i)
    const float a = factor * from[$(first)], b = factor * from[$(second)];
    to[$(first)] = a * cosine[$(i)] - b * sine[$(i)];
    to[$(second)] = b * cosine[$(i)] + a * sine[$(i)];
//$ end, { block = true })
//$ loop("i", rotated, width, 1, function(i)
    to[$(i)] = factor * from[$(i)];
//$ end)
}
//$ if rope.digits then

/* Cosines and sines of a position's rotary angle: the sum of the angles of its bytes. */
static void $(helper)_angles_$(pairs)(const float *all_cosines, const float *all_sines, size_t position, float *restrict cosine, float *restrict sine)
{
    const float *cosines = all_cosines + position % 256 * $(pairs);
    const float *sines = all_sines + position % 256 * $(pairs);
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

//$ loop("i", 0, pairs, 1, function(i)
    cosine[$(i)] = one * cosines[$(i)];
    sine[$(i)] = one * sines[$(i)];
//$ end)
    for (size_t at = 256, rest = position / 256; rest > 0; at += 256, rest /= 256) {
        cosines = all_cosines + (at + rest % 256) * $(pairs);
        sines = all_sines + (at + rest % 256) * $(pairs);
//$ loop("i", 0, pairs, 1, function(i)
        const float a = cosine[$(i)], b = sine[$(i)];
        cosine[$(i)] = a * cosines[$(i)] - b * sines[$(i)];
        sine[$(i)] = b * cosines[$(i)] + a * sines[$(i)];
//$ end)
    }
}
//$ end
