//$ takes formula, rows_text, floats
/* $(model): one LookupFFN layer (LookupFFN, ICML 2023, arXiv 2403.07221)$(floats and "" or " in integers,") with its shape compiled in.
//$ if shape.neighbours == 1 and not shape.score.scored then
   y = bias + sum over $(plural(shape.h, "table")) of T_k[c_k]: code c_k of a token comes from the signs of
//$ elseif not shape.score.scored then
   y = bias + sum over $(rows_text) of $(plural(shape.h, "table")) of T_k[c]: codes c of a token come from
   the signs and magnitudes of
//$ elseif shape.neighbours == 1 then
   y = bias + sum over $(plural(shape.h, "table")) of s_k T_k[c_k]: code c_k and score s_k of a token come
   from the signs and magnitudes of
//$ else
   y = bias + sum over $(rows_text) of $(plural(shape.h, "table")) of s T_k[c]: codes c and scores s of a token come
   from the signs and magnitudes of
//$ end
   $(shape.tau) projected values. $(formula)
