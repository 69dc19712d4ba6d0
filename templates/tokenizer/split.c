//$ takes number, inner, does
//$ local joins = { ["gap to match"] = "what lies before a match and the match", ["match to gap"] = "a match and what lies behind it",
//$     matches = "matches side by side" }
//$ local parts = { nothing = "matches and what lies between them", matches = "what lies between matches", gaps = "matches" }
//$ local one = joins[does.join] and "; " .. joins[does.join] .. " are one word" or ""
/* Split $(number) of text[bytes]$(does.bytes and ", byte by byte," or "") into $(parts[does.drop])$(one). Puts the ids of the words. Returns 0 or a code. */
static int $(model)_split$(number)(const $(names.weights) *weights, const unsigned char *text, size_t bytes, $(model)_ids *ids)
{
//$ if does.drop == "gaps" then
    size_t at = 0;
//$ elseif does.join == "matches" then
    size_t from = 0, end = 0, at = 0; /* text[from..end) are the matches that wait */
//$ else
    size_t from = 0, at = 0; /* from: of the word that waits */
//$ end
    int error = 0;
    while (at < bytes) {
        $(does.bytes and "const " or "")size_t length = $(model)_$(does.bytes and "match_bytes" or "match")(weights, weights->split$(number), text + at, bytes - at);
        if (!length) {
//$ if does.bytes then
            ++at;
//$ else
            (void) $(model)_character(text + at, bytes - at, &length);
            at += length;
//$ end
            continue;
        }
//$ if does.join == "matches" then
        if (at > end) {
            if (end > from)
                error = $(model)_$(inner)(weights, text + from, end - from, ids);
            if (!error)
                error = $(model)_$(inner)(weights, text + end, at - end, ids);
            from = at;
        }
        at += length;
        end = at;
//$ elseif does.join == "gap to match" then
        at += length;
        error = $(model)_$(inner)(weights, text + from, at - from, ids);
        from = at;
//$ elseif does.join == "match to gap" then
        if (at > from)
            error = $(model)_$(inner)(weights, text + from, at - from, ids);
        from = at;
        at += length;
//$ else
//$ if does.drop ~= "gaps" then
        if (at > from)
            error = $(model)_$(inner)(weights, text + from, at - from, ids);
//$ end
//$ if does.drop ~= "matches" then
//$ if does.drop == "nothing" then
        if (!error)
            error = $(model)_$(inner)(weights, text + at, length, ids);
//$ else
        error = $(model)_$(inner)(weights, text + at, length, ids);
//$ end
//$ end
        at += length;
        from = at; //$ if does.drop ~= "gaps"
//$ end
        if (error)
            return error;
    }
//$ if does.join == "matches" then
    if (end > from)
        error = $(model)_$(inner)(weights, text + from, end - from, ids);
    return error || at == end ? error : $(model)_$(inner)(weights, text + end, at - end, ids);
//$ elseif does.drop == "gaps" then
    return 0;
//$ else
    return at > from ? $(model)_$(inner)(weights, text + from, at - from, ids) : 0;
//$ end
}
