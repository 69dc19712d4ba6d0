//$ takes gather, helper, t, i, table, bias, columns, after, pack, constant, table_at, next_at, prefetch_next, run_name
//$ -- Adds the rows of all tables to a tile of columns, span by span, a group of tables after the other: sums wait as integers in between.
//$ local function calls(i, packs)
//$     for _, call in ipairs(gather.calls) do
//$         local i, loop = i, call.loop
//$         if loop then
$(i)for (size_t k = $(loop.first); k < $(loop.last); k += $(loop.step))
//$             i = i .. "    "
//$         end
//$         local function at(base, step) return sum(base, times(loop and "k" or call.first, step)) end
//$         local slice, sums = table_at(table, call), "sums, " .. t.pitch
//$         if packs then slice = helper .. "_pack_" .. t.width .. "(" .. slice .. ", " .. call.tables .. ", slice)" end
//$         local next = next_at(table, call, after)
//$         local from = call.from == "zeros" and "zeros, 0" or sums
//$         if call.zeros_at then
//$             local later = "k > " .. call.zeros_at
//$             from = later .. " ? sums : zeros, " .. later .. " ? " .. t.pitch .. " : 0"
//$         end
//$         local to = "sums"
//$         if call.to == "y" then
//$             local y = columns .. (gather.stream and ", streams" or "")
//$             to = sum("score_units", call.unit_at) .. ", "
//$                 .. (call.base == "y" and columns .. ", " .. shape.y_step or bias .. ", 0") .. ", " .. y
//$         end
$(i)$(run_name(call.run, t))($(slice),$(pack and " " .. (packs and pack.pitch or constant("ROW_PITCH")) .. "," or "")
$(i)    $(at("code", call.code_step)), $(at("words", call.words_step)),
$(i)    $(from), $(to), tokens$(prefetch_next and ", " .. next or ""));
//$     end
//$ end
//$ if pack then
$(i)if (tokens < $(gather.packs_from)) {
$(i)    /* too few to make up for copies */
//$     calls(i .. "    ", false)
$(i)} else {
//$     calls(i .. "    ", true)
$(i)}
//$ else
//$     calls(i, false)
//$ end
