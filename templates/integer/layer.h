//$ takes formula
/* $(model): one LookupFFN layer (LookupFFN, ICML 2023, arXiv 2403.07221) in integers, with its shape compiled in.
//$ if shape.score.share then
   y = bias + sum over $(plural(shape.h, "table")) of s_k T_k[c_k]: code c_k and score s_k of a token come from the signs and magnitudes of
//$ else
   y = bias + sum over $(plural(shape.h, "table")) of T_k[c_k]: code c_k of a token comes from the signs of
//$ end
   $(shape.tau) projected values. $(formula)
