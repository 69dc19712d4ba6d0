//$ takes weighted, v, in_scratch, helper, prefetch_first
{
    uint16_t *code = $(in_scratch("code", "uint16_t"));
//$ if weighted then
    float *score = $(in_scratch("score", "float"));
//$ end

    for (size_t first = 0; first < tokens; first += $(v.chunk)) {
        const size_t left = tokens - first < $(v.chunk) ? tokens - first : $(v.chunk);
        $(prefetch_first and helper .. "_codes" or v.names.project)(weights, x + first * $(shape.x_step), left, code, $(weighted and "score" or "NULL"), scratch$(prefetch_first and ", weights" or ""));
//$ if v.whole then
        if (left <= $(v.whole.tokens))
            $(v.whole.names.gather)(weights, code, $(weighted and "score" or "NULL"), y + first * $(shape.y_step), left, scratch);
        else
//$ end
$(v.whole and "    " or "")        $(v.names.gather)(weights, code, $(weighted and "score" or "NULL"), y + first * $(shape.y_step), left, scratch);
    }
}
