//$ takes isa, load_words, zeros, chains, barriers, counter, dot, dot_two, integers, of, strip, together
//$ -- The sums y0_0 and on of a strip of a block, whose products are integers: times scales, and units if folds have them.
//$ local starts = integers.starts
//$ -- The sums of `vectors` over word `k` of inputs, together with the next one if `pair`. Inputs that are blocks with
//$ -- units of their own have `integers.blocks` a token.
//$ local function add_word(vectors, tokens, k, x_k, name, pair)
//$     local before = name == "sum" and "" or name .. "_"
//$     for t = 0, tokens - 1 do
//$         local at = sum(times(t, "x_step"), x_k)
            const $(isa.index) $(before)x$(t) = $(isa.index_broadcast("x[" .. at .. "]"));
            const $(isa.index) next_x$(t) = $(isa.index_broadcast("x[" .. sum(at, 1) .. "]")); //$ if pair
//$     end
//$     for n, vector in ipairs(vectors) do
            const $(isa.index) $(before)w$(n - 1) = $(load_words(vector, k));
            const $(isa.index) next_w$(n - 1) = $(load_words(vector, k, 1)); //$ if pair
//$         for t = 0, tokens - 1 do
//$             local to = name .. t .. "_" .. n - 1
//$             local x, w = before .. "x" .. t, before .. "w" .. n - 1
            $(to) = $(dot_two(to, w, x, "next_" .. w, "next_" .. x)); //$ if pair
            $(to) = $(starts and dot(to, w, x) or dot(to, x, w)); //$ if not pair
//$         end
//$     end
//$ end
//$ -- The place of token `t`'s unit, or start.
//$ local function unit_at(t)
//$     local at = sum(t * (integers.blocks or 1), 0)
//$     if of.folds == 1 or not starts then return at end
//$     return "fold * " .. of.fold_blocks .. (t > 0 and " + " .. at or "")
//$ end
//$ local function scales_of(vector, at)
//$     return vector.partial and isa.load_partial("scales", at, vector.floats) or isa.load_unaligned("scales", at)
//$ end
//$ local vectors = strip.vectors
//$ local pair = dot_two and of.lines % 2 == 0
//$ local chains = pair and 1 or chains(of, #vectors, together)
//$ if of.folds > 1 then
//$ for t = 0, together - 1 do
//$ lines(zeros(t, #vectors))
//$ end
        for (size_t fold = 0; fold < $(of.folds); ++fold) {
//$ end
//$ for t = 0, together - 1 do
        const $(isa.index) start$(t) = $(isa.index_broadcast("starts[" .. unit_at(t) .. "]")); //$ if starts
//$ lines(zeros(t, #vectors, "sum", starts and "start" .. t))
//$ if chains > 1 then
//$ lines(zeros(t, #vectors, "next"))
//$ end
//$ end
//$ loop(counter, 0, of.lines, pair and 2 or chains, function(line)
//$ for chain = 1, chains do
//$     local k = sum(line, chain - 1)
//$     local x_k = k
//$     if of.folds > 1 then
//$         k, x_k = sum(times("fold", of.lines), k), sum("fold * " .. of.fold_words, k)
//$     end
//$     if type(k) == "string" and k:find("+", 1, true) then k = "(" .. k .. ")" end
//$     add_word(vectors, together, k, x_k, chain == 1 and "sum" or "next", pair)
//$ end
//$ local sums = {}
//$ for t = 0, together - 1 do
//$     for n = 0, #vectors - 1 do
//$         sums[#sums + 1] = "sum" .. t .. "_" .. n
//$         if chains > 1 then sums[#sums + 1] = "next" .. t .. "_" .. n end
//$     end
//$ end
//$ lines(barriers(sums))
//$ end)
//$ for t = 0, together - 1 do
//$ local unit = "unit" .. t
//$ if of.folds > 1 and starts then
        const $(isa.vector) $(unit) = $(isa.broadcast("units[" .. unit_at(t) .. "]"));
//$ end
//$ for n, vector in ipairs(vectors) do
//$ local name = t .. "_" .. n - 1
//$ local total = chains > 1 and isa.index_add("sum" .. name, "next" .. name) or "sum" .. name
//$ if of.folds > 1 then
//$     local scales = scales_of(vector, sum("fold * " .. of.fold_gap, vector.y))
        y$(name) = $(isa.fma(isa.float_of(total), starts and isa.mul(scales, unit) or scales, "y" .. name));
//$ else
        const $(isa.vector) y$(name) = $(isa.mul(isa.float_of(total), scales_of(vector, vector.y)));
//$ end
//$ end
//$ end
        } //$ if of.folds > 1
