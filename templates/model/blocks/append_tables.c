//$ takes isa, helper, turn
//$ -- What attention by tables of an encoder keeps of tokens.
//$ local hash, heads = shape.lsh, shape.kv_heads > 1
//$ local shifted = shape.shifted > 0

/* Keeps keys, their codes and values of the tokens of `span`.
//$ if shifted then
   Keys of the first $(shape.shifted > 1 and shape.shifted .. " heads" or "head") go beside the values of the next
   token, if there is one, those of the first token also beside its own.
//$ end
   */
static void $(helper)_append(const $(names.type("layer")) *layer, const $(names.type("buffers")) *b, const $(names.span) *span,
    const $(names.type("cache")) *cache)
{
$(include("templates/model/blocks/rows_of_span.c", { rows = { "k", "v" }, reads = 2 }))
    const size_t first = span->first, tokens = span->count;
$(include("templates/model/blocks/cache_of_span.c"))
    const size_t end = span->tokens; //$ if shifted
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

    for (size_t token = 0; token < tokens; ++token) {
$(include("templates/model/blocks/angles.c", { of = "layer", position = "(first + token)" })) //$ if shape.rope
//$ loop("head", 0, shape.kv_heads, 1, function(head)
//$ local from = times(head, shape.width)
//$ local function at(name, position) return sum(name, times(head, names.constant(name:upper() .. "_HEAD")), position) end
            const float *own = k + token * k_step$(from ~= 0 and " + " .. from or "");
            const float *from = v + token * v_step$(from ~= 0 and " + " .. from or "");
            float *value = $(at("values", "(first + token) * " .. names.constant("VALUE_PITCH")));
//$ local position = "first + token"
//$ if shifted then
            const size_t next = first + token + 1, is_shifted = $(type(head) == "number" and "1" or "head < " .. shape.shifted);
            for (size_t at = is_shifted && next > 1 ? next : next - 1; at < (is_shifted && next < end ? next + 1 : next); ++at) {
//$     position = "at"
//$ end
            float *key = $(at("keys", "(" .. position .. ") * " .. shape.width));
//$ if shape.rope then
            $(turn)_rotate_$(shape.width)(own, cosine, sine, one, key);
//$ else
//$ over_row(shape.width, function(at, load, store)
                $(store("key", at, isa.mul(isa.broadcast("one"), load("own", at))));
//$ end)
//$ end
            } //$ if shifted
//$ over_row(shape.width, function(at, load, store)
                $(store("value", at, isa.mul(isa.broadcast("one"), load("from", at))));
//$ end)
//$ end, { block = true })
    }
//$ loop("head", 0, shape.kv_heads, 1, function(head)
//$ local function of_head(name) return sum(name, times(head, names.constant(name:upper() .. "_HEAD"))) end
//$ local from, to = "first", "first + tokens"
//$ if shifted then
//$ local is_shifted = type(head) == "number" and "" or "head < " .. shape.shifted .. " && "
        const size_t from = $(is_shifted)first > 0 ? first + 1 : first;
        const size_t to = $(is_shifted)first + tokens < end ? first + tokens + 1 : first + tokens;
        if (from < to)
//$ from, to = "from", "to"
//$ end
//$ local keys = of_head("keys") .. " + " .. from .. " * " .. shape.width .. ", " .. shape.width
//$ local codes = of_head("codes") .. " + " .. from .. ", " .. names.constant("CODE_PITCH")
    $(shifted and "    " or "")$(helper)_hash_tokens(layer->signs, $(keys), $(shifted and to .. " - " .. from or "tokens"), $(codes), b->z);
//$ end, { block = true })
}
