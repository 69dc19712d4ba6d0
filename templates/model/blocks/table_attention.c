//$ takes prologue, symbol, helper, chance, training
//$ -- Attention by tables of a head. training: false, or of a static function for whole sequences, which leaves the norm to
//$ -- what calls it. sparse: they meet so few rows that these alone are cleared.
//$ local hash, causal, group, width = shape.lsh, shape.causal, shape.group, shape.width
//$ local code_pitch, tables, window, short = not causal and names.constant("CODE_PITCH"), hash.tables, hash.window, shape.cache.limit
//$ lines(prologue)
//$ local sum_of_lanes = across("add")
$(include("templates/model/blocks/near_tokens.c")) //$ if window > 0
//$ local copy = causal and window > 0 and once("templates/model/blocks/copy_rows.c", { width = width }) .. "_copy_" .. width
$(include("templates/model/blocks/windows_of_decoder.c", { copy = copy })) //$ if copy
$(include("templates/model/blocks/keep_last.c", { copy = copy })) //$ if copy
$(include("templates/model/blocks/windows_of_encoder.c")) //$ if window > 0 and not causal
$(include("templates/model/blocks/rows_of_tables.c"))
$(include("templates/model/blocks/short_tables.c")) //$ if short
$(include("templates/model/blocks/tables_of_" .. (causal and "decoder" or "encoder") .. ".c"))

/* Makes y 0, for $(plural(group, "head")) of each token. */
static void $(helper)_clear_heads(float *y, size_t y_step, size_t tokens)
{
    const float zero = $hidden(0.0f); /* else loops are calls of memset */

    for (size_t token = 0; token < tokens; ++token, y += y_step)
        for (size_t i = 0; i < $(group * width); ++i)
            y[i] = zero;
}
//$ if not training then

/* y / sqrt(|y|^2 + $(chance.eps_text)^2), of $(tables) times y, for $(plural(group, "head")) of each token. */
static void $(helper)_norm_heads(float *y, size_t y_step, size_t tokens)
{
    for (size_t token = 0; token < tokens; ++token)
        for (size_t head = 0; head < $(group); ++head) {
            float *out = y + token * y_step + head * $(width);
$(include("templates/model/blocks/norm_of_tables.c", { from = "out", to = "out", width = width, sum_of_lanes = sum_of_lanes }))
        }
}
//$ end

/* Attention of a head of k and v and $(group > 1 and "the " .. group .. " heads" or "the head") of q that it serves, by tables
   (YOSO, arXiv 2111.09714), for some tokens$((causal or window > 0) and " from position `first` on" or "").
   span     the tokens
   kept     the cache of the head of k and v:
//$ if causal then
//$ if window > 0 then
            keys [$(shape.cache.rows)][$(width)] of the last $(plural(window, "token")) before them, the oldest in row first % $(window),
            $(window > 1 and "then of their own first ones, " or "")and likewise
            values [$(shape.cache.rows)][$(shape.cache.pitch)]; codes [$(tables)][$(window)], a ring;
//$ end
//$ if training then
            tables [$(hash.together)][$(hash.rows)][$(shape.cache.pitch)]: $(plural(hash.together, "table")) at a time, overwritten.
//$ else
            tables [$(tables)][$(hash.rows)][$(shape.cache.pitch)]: sums of the values of all tokens before
            $(window > 0 and "these" or "them")$(short and ", in units" or ""), cleared where first is 0$(short and ";" or ".")
            units [$(tables // hash.together)]: of $(plural(hash.together, "table")) each. //$ if short
//$ end
//$ else
            keys [positions][$(width)]; //$ if window > 0
            values [positions][$(shape.cache.pitch)]; codes [$(tables)][$(code_pitch)] of the keys of the sequence.
//$ end
   a        q: $(plural(group, "head")); q_codes $(group > 1 and "[" .. group .. "]" or "")[$(tables)][tokens];
//$ if causal then
            k and v: one head each; k_codes [$(tables)][tokens];
//$ else
            table [$(hash.together)][$(hash.rows)][$(shape.cache.pitch)]: $(plural(hash.together, "table")) at a time, overwritten;
//$ end
            y: the result, $(plural(group, "head")). Cannot fail. */
$(training and "static " or "")void $(symbol)(const $(names.type("cache")) *kept, const $(names.span) *span, const $(names.type("attention")) *a)
{
    $(helper)_clear_heads(a->y.at, a->y.step, span->count);
    $(helper)_add_windows(kept, span, a); //$ if window > 0
    $(helper)_add_tables(kept, span, a);
    $(helper)_keep_last(kept, span, a); //$ if copy
    $(helper)_norm_heads(a->y.at, a->y.step, span->count); //$ if not training
}
