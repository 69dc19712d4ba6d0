//$ takes v, helper, prefetch_first
{
    uint16_t *code = (uint16_t *) (void *) ($(sum("(unsigned char *) scratch", v.scratch.code)));
    float *score = (float *) (void *) ($(sum("(unsigned char *) scratch", v.scratch.score)));

    for (size_t first = 0; first < tokens; first += $(v.chunk)) {
        const size_t left = tokens - first < $(v.chunk) ? tokens - first : $(v.chunk);
        $(prefetch_first and helper .. "_codes" or v.names.project)(weights, x + first * $(shape.x_step), left, code, score, scratch$(prefetch_first and ", weights" or ""));
        $(v.names.gather)(weights, code, score, y + first * $(shape.y_step), left, scratch);
    }
}
