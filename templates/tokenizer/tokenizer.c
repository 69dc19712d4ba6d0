//$ takes facts, parts, splits
//$ for _, part in ipairs(parts) do
$(include("templates/tokenizer/" .. part.file, part.values))

//$ end
/* Normalises text[bytes], which no added piece is in, splits it into words and puts their ids. Returns 0 or a code. */
static int $(model)_stretch(const $(names.weights) *weights, const unsigned char *text, size_t bytes,
    int at_start, //$ if splits.at_start
    unsigned char *scratch, size_t scratch_bytes, $(model)_ids *ids)
{
//$ if #facts.passes > 0 then
    const size_t half = scratch_bytes / 2;
//$ local odd = #facts.passes % 2 == 1
    unsigned char *to = $(odd and "scratch" or "scratch + half"), *other = $(odd and "scratch + half" or "scratch"), *swapped;
    size_t used;

    /* from one half of scratch to the other; the last pass writes to the first half */
//$ for i, pass in ipairs(facts.passes) do
//$ local weights = (pass.kind == "runs" or pass.kind == "prepend") and "" or "weights, "
//$ if pass.kind == "map" or pass.kind == "decompose" then
//$ local hangul = splits.hangul and (pass.kind == "decompose" and "1" or "0")
    bytes = $(model)_map(weights->$(pass.table)_trie, weights->$(pass.table)_at, weights->$(pass.table)_text,
        $(listed(hangul, "text", "bytes", "to", "half")));
//$ elseif pass.kind == "charsmap" then
    bytes = $(model)_charsmap(weights->$(pass.table)_units, $(splits.counts[pass.table .. "_units"])u,
        weights->$(pass.table)_text, $(splits.counts[pass.table .. "_text"])u, text, bytes, to, half);
//$ elseif pass.kind == "order" or pass.kind == "compose" then
    bytes = $(model)_$(pass.kind)(weights, text, bytes, to, half);
//$ else
    bytes = $(model)_pass_$(i)($(weights)text, bytes, to, half$(pass.prefix == "first" and ", at_start" or ""));
//$ end
    if (bytes == $(names.macro("FULL")))
        return $(names.macro("ERROR_SCRATCH"));
    text = to;
//$ if i < #facts.passes then
    swapped = to;
    to = other;
    other = swapped;
//$ end
//$ end
//$ if #facts.passes == 1 then
    (void) other;
    (void) swapped;
//$ end
    used = (bytes + 7) & ~(size_t) 7;
    if (used > scratch_bytes)
        return $(names.macro("ERROR_SCRATCH"));
    ids->room = scratch + used;
    ids->room_bytes = scratch_bytes - used;
//$ else
    ids->room = scratch;
    ids->room_bytes = scratch_bytes;
//$ end
//$ if facts.kind ~= "bytes" then
    if (bytes > 0x7fffffffu) /* places are 32 bits */
        return $(names.macro("ERROR_SCRATCH"));
//$ end
    (void) weights; //$ if facts.kind == "bytes"
//$ if facts.split == "none" then
    return bytes ? $(model)_pieces($(facts.kind == "bytes" and "" or "weights, ")text, bytes, ids) : 0;
//$ elseif facts.split == "patterns" then
    return $(model)_split1(weights, text, bytes, ids);
//$ else

    for (size_t at = 0, length; at < bytes; at += length) {
        int error;
//$ if splits.skips then
        if ($(model)_class(weights, text, at, bytes, &length) & $(names.macro("SPACE")))
            continue;
//$ end
        length = $(model)_word($(facts.split == "meta" and "" or "weights, ")text + at, bytes - at);
        error = $(model)_pieces(weights, text + at, length, ids);
        if (error)
            return error;
    }
    return 0;
//$ end
}

//$ for _, level in ipairs(splits.added) do
$(include("templates/tokenizer/added.c", level))

//$ end
ptrdiff_t $(names.tokenize)(const $(names.weights) *weights, const char *text, size_t bytes, int32_t *ids,
    size_t most, void *scratch, size_t scratch_bytes)
{
    const unsigned char *from = (const unsigned char *) text;
    $(model)_ids list;
    int error;

    if (!weights || (!text && bytes) || (!ids && most) || !scratch)
        return -$(names.macro("ERROR_NULL"));
    if ((uintptr_t) scratch % 8)
        return -$(names.macro("ERROR_ALIGNMENT"));
    list.list = ids;
    list.most = most;
    list.count = 0;
    list.room = 0;
    list.room_bytes = 0;
    list.after_unknown = 0;
    $(model)_put($(id)u, &list); //$ for _, id in ipairs(facts.first)
    error = $(model)_$(splits.whole)(weights, from, bytes,
        1, //$ if splits.at_start
        (unsigned char *) scratch, scratch_bytes, &list);
    if (error)
        return -error;
    $(model)_put($(id)u, &list); //$ for _, id in ipairs(facts.last)
    return list.count > most ? -$(names.macro("ERROR_ROOM")) : (ptrdiff_t) list.count;
}

const char *$(names.text_of)(const $(names.weights) *weights, int32_t id, size_t *bytes)
{
    if (id < 0 || id >= $(facts.pieces))
        return 0;
    *bytes = weights->text_at[id + 1] - weights->text_at[id];
    return (const char *) weights->text + weights->text_at[id];
}
