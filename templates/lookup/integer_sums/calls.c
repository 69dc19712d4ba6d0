//$ takes gather, helper, t, table, bias, columns, after, pack, constant, table_at, next_at, prefetch_next, run_name
//$ -- Adds the rows of all tables to a tile of columns, span by span, a group of tables after the other: sums wait as integers in between.
//$ local function calls(packs)
//$     for _, call in ipairs(gather.calls) do
//$         local loop = call.loop
        for (size_t k = $(loop.first); k < $(loop.last); k += $(loop.step)) //$ if loop
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
        $(run_name(call.run, t))($(slice),$(pack and " " .. (packs and pack.pitch or constant("ROW_PITCH")) .. "," or "")
            $(at("code", call.code_step)), $(at("words", call.words_step)),
            $(from), $(to), tokens$(prefetch_next and ", " .. next or ""));
//$     end
//$ end
//$ if pack then
    if (tokens < $(gather.packs_from)) {
        /* too few to make up for copies */
//$     calls(false)
    } else {
//$     calls(true)
    }
//$ else
//$     calls(false)
//$ end
