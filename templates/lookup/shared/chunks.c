//$ takes weighted, kernels, in_scratch, helper, prefetch_first
{
    uint16_t *code = $(in_scratch("code", "uint16_t"));
//$ if weighted then
    float *score = $(in_scratch("score", "float"));
//$ end

    for (size_t first = 0; first < tokens; first += $(kernels.chunk)) {
        const size_t left = tokens - first < $(kernels.chunk) ? tokens - first : $(kernels.chunk);
        $(prefetch_first and helper .. "_codes" or kernels.names.project)(weights, x + first * $(shape.x_step), left, code, $(weighted and "score" or "NULL"), scratch$(prefetch_first and ", weights" or ""));
//$ local function gathered(i, gather)
$(i)$(gather.names.gather)(weights, code, $(weighted and "score" or "NULL"), y + first * $(shape.y_step), left, scratch);
//$ end
//$ for n = 2, #kernels.gathers do
        if (left <= $(kernels.gathers[n].up_to))
//$     gathered("            ", kernels.gathers[n])
        else
//$ end
//$ gathered(#kernels.gathers > 1 and "            " or "        ", kernels.gathers[1])
    }
}
