//$ takes gather, helper, at, width, prefetches, token, constant, pitch_argument, commas, place
//$ -- One strip of a tile of columns of one token: the rows of every table, or of those of `token.run`, summed exactly as
//$ -- integers.
//$ local run, step, strip, starts = token.run, gather.integers.step, gather.integers.strip_of[width], {}
//$ local m = shape.neighbours
//$ for n, line in ipairs(strip.lines) do
//$     local call = run and "_load_sums(" .. sum("token_from", sum(at, line.at)) .. ")" or "_zero_sums()"
//$     starts[n] = token.prefix.keep .. call
//$ end
//$ local function following(k)
//$     if strip.prefetches == 0 then return "" end
//$     if not gather.prefetch_tokens then return ", " .. (prefetches and "prefetch_at - " .. at or 0) end
//$     return ", " .. sum("table", place(prefetches.at), k and times("k", constant("TABLE_PITCH")) or 0) .. ", "
//$         .. sum(prefetches.code, k and times("k", m) or 0)
//$ end
//$ local alone = #starts == 1
//$ local sums, line_sums = alone and "&sums" or "sums", function(n) return alone and "&sums" or "&sums[" .. n - 1 .. "]" end
    $(token.prefix.line)_sums sums = $(starts[1]); //$ if alone
    $(token.prefix.line)_sums sums[$(#starts)] = { $(commas(starts)) }; //$ if not alone
//$ if not run then
    for (size_t k = 0; k < tables; k += $(step))
        $(helper)_add_4x$(width)($(sums), $(sum("table", place(at), times("k", constant("TABLE_PITCH")))),
            $(gather.integers.partial and "tables - k, " or "")$(sum("token_code", times("k", m))),
            token_words + k / $(step)$(following(true)));
//$ elseif run.tables > step then
    $(helper)_add_$(run.tables * m)x$(width)($(sums), $(sum("table", place(at))), $(pitch_argument)token_code, token_words$(following()));
//$ else
    $(helper)_add_4x$(width)($(sums), $(sum("table", place(at))),
        $(pitch_argument)$(gather.integers.partial and run.tables .. ", " or "")token_code, token_words$(following()));
//$ end
//$ for n, line in ipairs(strip.lines) do
//$     local place = sum(at, line.at)
//$     if run and not run.last then
    $(token.prefix.keep)_store_sums($(line_sums(n)), $(sum(token.to, place)));
//$     else
    $(token.prefix.finish)_$(gather.stream and "stream" or "finish")_y$(line.suffix)($(line_sums(n)), unit, $(sum(token.from, place)),
        $(sum(token.to, place))$(gather.stream and ", streams" or ""));
//$     end
//$ end
