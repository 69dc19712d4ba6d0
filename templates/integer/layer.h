//$ takes formula
/* $(model): one LookupFFN layer (LookupFFN, ICML 2023, arXiv 2403.07221) in integers, with its shape compiled in.
   y = bias + sum over $(shape.h) tables of s_k T_k[c_k]: code c_k and score s_k of a token come from the signs and magnitudes of
   $(shape.tau) projected values. $(formula)
