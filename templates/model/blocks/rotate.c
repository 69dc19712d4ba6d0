//$ takes helper
//$ local pairs = names.constant("ROPE_PAIRS")
//$ local rotated = 2 * shape.rope.half
//$ local a, b = "i", "i + " .. shape.rope.half
//$ if shape.rope.interleaved then a, b = "2 * i", "2 * i + 1" end

/* One head of a query or key, its $(rotated == shape.width and "" or "first " .. rotated .. " ")elements
   $(shape.rope.interleaved and "2i and 2i + 1" or "i and i + " .. shape.rope.half) rotated by the angles of its
   position, times `factor`. */
//$ local apart = shape.lsh and "" or "restrict " -- a head may be rotated in place
static void $(helper)_rotate(const float *$(apart)from, const float *restrict cosine, const float *restrict sine,
    float factor, float *$(apart)to)
{
    for (size_t i = 0; i < $(pairs); ++i) {
        const float a = factor * from[$(a)], b = factor * from[$(b)];
        to[$(a)] = a * cosine[i] - b * sine[i];
        to[$(b)] = b * cosine[i] + a * sine[i];
    }
//$ if rotated < shape.width then
    for (size_t i = $(rotated); i < $(shape.width); ++i)
        to[i] = factor * from[i];
//$ end
}
//$ if shape.rope.digits then

/* Cosines and sines of a position's rotary angle: the sum of the angles of its bytes. */
static void $(helper)_angles(const $(names.type("layer")) *layer, size_t position, float *restrict cosine, float *restrict sine)
{
    const float *cosines = layer->cosines + position % 256 * $(pairs);
    const float *sines = layer->sines + position % 256 * $(pairs);
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

    for (size_t i = 0; i < $(pairs); ++i) {
        cosine[i] = one * cosines[i];
        sine[i] = one * sines[i];
    }
    for (size_t at = 256, rest = position / 256; rest > 0; at += 256, rest /= 256) {
        cosines = layer->cosines + (at + rest % 256) * $(pairs);
        sines = layer->sines + (at + rest % 256) * $(pairs);
        for (size_t i = 0; i < $(pairs); ++i) {
            const float a = cosine[i], b = sine[i];
            cosine[i] = a * cosines[i] - b * sines[i];
            sine[i] = b * cosines[i] + a * sines[i];
        }
    }
}
//$ end
