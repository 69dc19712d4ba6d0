//$ takes isa, counter, x_inputs, load_weights, load_words, unpack, zeros, barriers, of, strip, together
//$ -- The sums y0_0 and on of a strip of a block, in floats.
//$ local function x_at(t, row) return "x[" .. sum(times(t, "x_step"), row) .. "]" end
//$ -- Adds the products of one input.
//$ local function add_input(vectors, tokens, k, x_k)
    const $(isa.vector) w$(n - 1) = $(load_weights(vector, k)); //$ for n, vector in ipairs(vectors)
//$     for t = 0, tokens - 1 do
    const $(isa.vector) x$(t) = $(isa.broadcast(x_at(t, x_k)));
    y$(t)_$(n) = $(isa.fma("x" .. t, "w" .. n, "y" .. t .. "_" .. n)); //$ for n = 0, #vectors - 1
//$     end
//$ end
//$ -- Adds the products of the inputs that share word number `k`. Words are loaded last: they take registers.
//$ local function add_word(vectors, tokens, k, inputs)
//$     for part, input in ipairs(inputs) do
            const $(isa.vector) x$(t)_$(part - 1) = $(isa.broadcast(x_at(t, input))); //$ for t = 0, tokens - 1
//$     end
//$     for n, vector in ipairs(vectors) do
//$         local parts = unpack("words" .. n - 1)
//$         local kept = barriers { "words" .. n - 1 }
            $(#kept > 0 and "" or "const ")$(isa.index) words$(n - 1) = $(load_words(vector, k));
//$         lines(kept)
//$         for part = 0, #inputs - 1 do
            const $(isa.vector) w$(n - 1)_$(part) = $(parts[part + 1]);
//$             for t = 0, tokens - 1 do
            y$(t)_$(n - 1) = $(isa.fma("x" .. t .. "_" .. part, "w" .. n - 1 .. "_" .. part, "y" .. t .. "_" .. n - 1));
//$             end
//$         end
//$     end
//$ end
//$ local function add(vectors, tokens, k, inputs)
//$     if unpack then add_word(vectors, tokens, k, inputs) else add_input(vectors, tokens, k, inputs[1]) end
//$ end
//$ for t = 0, together - 1 do
//$ lines(zeros(t, #strip.vectors))
//$ end
        for (size_t fold = 0; fold < $(of.folds); ++fold) //$ if of.folds > 1
//$ loop(counter, 0, of.k_pairs, 1, function(k)
//$ if of.folds == 1 then
//$ add(strip.vectors, together, k, x_inputs(0, k))
//$ else
//$ local word = sum(times("fold", of.k_pairs), k)
//$ add(strip.vectors, together, k == 0 and word or "(" .. word .. ")", x_inputs("fold * " .. of.fold_gap, k))
//$ end
//$ end, { block = of.folds > 1 or #of.last_rows > 0 })
//$ if #of.last_rows > 0 then
//$ add(strip.vectors, together, of.k_pairs, of.last_rows)
//$ end
