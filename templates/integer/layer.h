//$ takes formula
/* $(model): one LookupFFN layer (LookupFFN, ICML 2023, arXiv 2403.07221) in integers, with its shape compiled in.
//$ if shape.neighbours == 2 then
   y = bias + sum over the 2 best rows of $(plural(shape.h, "table")) of $(shape.score.share and "s " or "")T_k[c]: codes c$(shape.score.share and " and scores s" or "") of a token come from the signs and magnitudes of
//$ elseif shape.score.share then
   y = bias + sum over $(plural(shape.h, "table")) of s_k T_k[c_k]: code c_k and score s_k of a token come from the signs and magnitudes of
//$ else
   y = bias + sum over $(plural(shape.h, "table")) of T_k[c_k]: code c_k of a token comes from the signs of
//$ end
   $(shape.tau) projected values. $(formula)
