//$ takes isas, variants, conditions, call
//$ -- The call of the kernels of the instruction set that bind has chosen.
//$ if #isas > 1 then
    switch (weights->isa) {
//$ for i = #variants, 2, -1 do
#if $(conditions[i]) //$ if conditions[i] and (i == #variants or conditions[i + 1] ~= conditions[i])
    case $(i - 1): $(call(variants[i])); break;
#endif //$ if conditions[i] and (i == 2 or conditions[i - 1] ~= conditions[i])
//$ end
    default: $(call(variants[1])); break;
    }
//$ else
    $(call(variants[1]));
//$ end
