//$ takes structs, rows, reads
//$ -- The rows of attention with these names, from the first token of `span` on. reads: how many of them are only read.
//$ for n, name in ipairs(rows) do
//$ local from = structs.rows[name].from
//$ local at = structs.rows[name].at and names.constant(structs.rows[name].at) or 0
    const size_t $(name)_step = b->$(from).step;
    $(n > reads and "" or "const ")float *$(name) = $(sum("b->" .. from .. ".at", at, "span->token * " .. name .. "_step"));
//$ end
