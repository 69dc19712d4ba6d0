//$ takes prologue, symbol, helper, chance, training
//$ -- Attention by tables of a head. training: false, or of a static function for whole sequences, which leaves the norm to
//$ -- what calls it. sparse: they meet so few rows that these alone are cleared.
//$ local hash, causal, group, width = shape.lsh, shape.causal, shape.group, shape.width
//$ local code_pitch, tables, window, short = not causal and names.constant("CODE_PITCH"), hash.tables, hash.window, shape.cache.limit
//$ lines(prologue)
//$ local sum_of_lanes = across("add")
$(include("templates/model/blocks/near_tokens.c")) //$ if window > 0
//$ local copy = causal and window > 0 and once("templates/model/blocks/copy_rows.c", { width = width }) .. "_copy_" .. width
$(include("templates/model/blocks/keep_last.c", { copy = copy })) //$ if copy
$(include("templates/model/blocks/short_tables.c")) //$ if short
//$ if not training then

/* y / sqrt(|y|^2 + $(chance.eps_text)^2), of $(tables) times y, for $(plural(group, "head")) of each token. */
static void $(helper)_norm_heads(float *y, size_t y_step, size_t tokens)
{
    for (size_t token = 0; token < tokens; ++token)$(group > 1 and "" or " {")
        for (size_t row = 0; row < $(group); ++row) { //$ if group > 1
            float *out = y + token * y_step$(group > 1 and " + row * " .. width or "");
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
//$ -- The row of each of the tables from number `table` on, whose rows lie from `rows` on, that code(n) is the code of; or
//$ -- its number, where rows are short.
//$ local table_step = "(" .. hash.rows .. " * " .. names.constant("VALUE_PITCH") .. ")"
//$ local function rows_of(const, name, code)
//$     local list = {}
//$     for n = 0, hash.together - 1 do
//$         local at = short and (n > 0 and n * hash.rows .. " + " or "") or "rows + " .. (n > 0 and times(n, table_step) .. " + " or "")
//$         local type = short and "const size_t " or const .. "float *"
//$         list[n + 1] = type .. name .. n .. " = " .. at .. "(size_t) " .. code(n)
//$         list[n + 1] = list[n + 1] .. (short and ";" or " * " .. names.constant("VALUE_PITCH") .. ";")
//$     end
//$     return list
//$ end
//$ -- The code of table number `n` of these for a token, whose codes begin with `name`, those of a table `step` apart.
//$ local function code_of(name, step, at)
//$     return function(n) return name .. "[" .. (n > 0 and "(table + " .. n .. ")" or "table") .. " * " .. step .. " + " .. at .. "]" end
//$ end
//$ local given = { helper = helper, rows_of = rows_of, code_of = code_of, table_step = table_step }
//$ if causal then given.copy = copy end
$(include("templates/model/blocks/tables_of_decoder.c", given)) //$ if causal
$(include("templates/model/blocks/tables_of_encoder.c", given)) //$ if not causal
    $(helper)_norm_heads(y, y_step, tokens); //$ if not training
}
