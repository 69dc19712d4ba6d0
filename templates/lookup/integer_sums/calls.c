//$ takes gather, of_tile, t, table, bias, to_y, after, pack, table_at, next_at, prefetch_next, run_name
//$ -- Adds the rows of all tables to a tile of columns, span by span, a group of tables after the other: sums wait as integers in between.
//$ local set = {} -- what fields are
//$ local function assign(name, value)
        columns.$(name) = $(value); //$ if set[name] ~= value
//$     set[name] = value
//$ end
//$ local spans = #gather.integers.spans
//$ local function assign_ends(call)
//$     assign("units", sum("score_units", call.unit_at))
//$     assign("base", call.base == "y" and to_y or bias)
//$     if spans > 1 then assign("base_step", call.base == "y" and shape.y_step or 0) end
//$ end
//$ if gather.integers.waits then assign("to", "sums") end
//$ assign("y", to_y)
//$ if gather.stream then assign("streams", "streams") end
//$ if spans == 1 then assign_ends(gather.calls[#gather.calls]) end
//$ for _, call in ipairs(gather.calls) do
//$     local loop, later = call.loop, call.zeros_at and "k > " .. call.zeros_at
//$     if not later then
//$         assign("from", call.from)
//$         assign("from_step", call.from == "zeros" and 0 or t.pitch)
//$     end
//$     if call.to == "y" and spans > 1 then assign_ends(call) end
        for (size_t k = $(loop.first); k < $(loop.last); k += $(loop.step)) { //$ if loop
//$     if later then
            columns.from = $(later) ? sums : zeros;
            columns.from_step = $(later) ? $(t.pitch) : 0;
//$         set.from, set.from_step = nil, nil
//$     end
//$     local function at(base, step)
//$         return sum(base, call.first == 0 and 0 or (loop and "k" or call.first) .. (step == 1 and "" or " * " .. of_tile(step)))
//$     end
//$     local next = next_at(table, call, after)
        $(run_name(call.run, t))($(listed(table_at(table, call), pack and "slice", at("code", call.code_step))),
            $(at("words", call.words_step)), &columns, tokens$(prefetch_next and ", " .. next or ""));
        } //$ if loop
//$ end
