//$ takes helper, v, cached
//$ -- Attention by tables of some tokens.
//$ local hash, causal, group = shape.lsh, shape.causal, shape.group
//$ local near = hash.window > 0
//$ local rows = sum("scratch", names.constant("TABLE_AT"))
//$ local all = { { name = "q", heads = shape.heads }, causal and { name = "k", heads = shape.kv_heads } or nil }
//$ local parameters = listed(
//$     shape.rope and "const " .. names.weights .. " *weights",
//$     "const float *signs, float *q, size_t q_step",
//$     causal and "float *k, size_t k_step, const float *v, size_t v_step",
//$     cached((causal and "" or "const ") .. "%s *%s"),
//$     "size_t first, size_t tokens",
//$     not causal and "size_t end",
//$     "uint16_t *q_codes" .. (causal and ", uint16_t *k_codes" or ""),
//$     "float *y, size_t y_step, float *scratch"
//$ )

//$ local rotates = shape.rope and " Rotates q" .. (causal and " and k" or "") .. " in place." or ""
/* Attention of some tokens from position `first` on: q and y are rows of $(plural(shape.heads, "head")) of $(shape.width).$(rotates) */
static void $(helper)_attend($(parameters))
{
//$ if shape.rope then
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

    for (size_t token = 0; token < tokens; ++token) {
$(include("templates/model/blocks/angles.c", { i = "        ", position = "(first + token)" }))
//$ for _, row in ipairs(all) do
//$ local name, heads = row.name, row.heads
//$ local own = name .. " + token * " .. name .. "_step + head * " .. shape.width
        for (size_t head = 0; head < $(heads); ++head)
            $(helper)_rotate($(own), cosine, sine, one, $(own));
//$ end
    }
//$ end
//$ if causal and shape.shifted > 0 then
    /* the first $(shape.shifted > 1 and shape.shifted .. " heads" or "head") of k: those of the token before */
    for (size_t token = 0; token < tokens; ++token)
        for (size_t i = 0; i < $(shape.shifted * shape.width); ++i) {
            const float own = k[token * k_step + i];

            k[token * k_step + i] = first + token > 0 ? before[i] : own;
            before[i] = own;
        }
//$ end
//$ for _, row in ipairs(all) do
//$ local name, heads = row.name, row.heads
    $(helper)_hash_heads(signs, $(name), $(name)_step, $(heads), tokens, $(name)_codes, scratch);
//$ end
//$ if not (causal or near) then
    (void) keys; /* only a window reads them */
    (void) first;
//$ end
//$ loop("    ", "head", 0, shape.kv_heads, 1, function(i, head)
//$ local of_q = times(head, group * shape.width)
//$ local state = false
//$ for _, part in ipairs(shape.cache.parts) do
//$     local own = part.read and sum(part.name, times(head, names.constant(part.name:upper() .. "_HEAD")))
//$     state = own and listed(state, own) or state
//$ end
//$ local function codes_of(name, of_head) return sum(name, head ~= 0 and "head * " .. of_head * hash.tables .. " * tokens" or 0) end
//$ local given = listed(
//$     near and sum("q", of_q) .. ", q_step",
//$     codes_of("q_codes", group),
//$     causal and near and sum("k", times(head, shape.width)) .. ", k_step",
//$     causal and sum("v", times(head, shape.width)) .. ", v_step, " .. codes_of("k_codes", 1),
//$     state,
//$     (causal or near) and "first",
//$     "tokens" .. (causal and "" or ", end"),
//$     sum("y", of_q) .. ", y_step",
//$     not causal and (shape.cache.limit and "(int16_t *) (void *) (" .. rows .. ")" or rows)
//$ )
$(i)$(v.names.attention)($(given));
//$ end)
}
