//$ takes choice
#ifndef $(names.macro("NO_REQUEST_AMX"))
int $(names.request_amx)(void)
{
#if $(choice.permitted[1].condition)
    const int offered =
//$ for i, set in ipairs(choice.permitted) do
        $(i > 1 and "|| " or "")$(model)_cpu_has($(set.x86))$(i == #choice.permitted and ";" or "") /* $(set.name) */
//$ end

    if (offered) {
        switch ($(model)_arch_prctl(0x1023, 18)) { /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA */
        case 0: return $(names.macro("OK"));
        case -28: return $(names.macro("ERROR_AMX_STACK")); /* ENOSPC */
        case -22: /* EINVAL: a Linux before 5.16 */
        case -95: break; /* EOPNOTSUPP: one that does not save the tiles */
        default: return $(names.macro("ERROR_AMX_REFUSED"));
        }
    }
#endif
    return $(names.macro("ERROR_AMX"));
}
#endif
