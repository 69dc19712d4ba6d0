#!/bin/bash
# The emitted exp keeps the error bound that its comment states for every float32 argument: in portable C with and without fused
# multiply-add, and on the vectors of this CPU.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/bound.c" <<'END'
#include KERNEL
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { lanes = LANES }; /* arguments of one call */

static void emitted(const float *v, float *e) { STORE; }

static float one(float v)
{
    float all[lanes], e[lanes];
    for (int i = 0; i < lanes; ++i)
        all[i] = v;
    emitted(all, e);
    return e[0];
}

int main(void)
{
    double worst = 0, at = 0;
    const float end = 87.0f;
    uint32_t last;
    memcpy(&last, &end, sizeof last);
    /* Every STRIDEth call, and all of them near 0 and near the last argument. */
    const uint32_t edge = 4096, step = (uint32_t) lanes * STRIDE;
    for (uint32_t bits = 0; bits <= last; bits += bits < edge || bits + step + edge > last ? lanes : step) {
        float v[lanes], e[lanes];
        for (uint32_t i = 0; i < lanes; ++i) {
            const uint32_t own = bits + i <= last ? bits + i : last;
            memcpy(&v[i], &own, sizeof own);
            v[i] = -v[i];
        }
        emitted(v, e);
        for (int i = 0; i < lanes; ++i) {
            const double exact = exp(v[i]), error = fabs(e[i] - exact) / exact;
            if (!(error <= worst)) {
                worst = error;
                at = v[i];
            }
        }
    }
    const int clamped = one(-100.0f) == one(-87.0f) && one(-INFINITY) == one(-87.0f);
    printf("worst relative error %.3g = 2^%.2f at %g; %s below -87; NaN %s\n", worst, log2(worst), at,
        clamped ? "constant" : "NOT CONSTANT", isnan(one(NAN)) ? "stays" : "IS LOST");
    return !(worst < 0x1p-23 && clamped && isnan(one(NAN)));
}
END
stride=509
[[ $(lua5.4 tests/effort.lua exp) == 0 ]] || stride=1
here=" $(lua5.4 tests/support/isa.lua "$LOOKUPC") "

# row ISA [FLAG...]: checks the exp of one instruction set, or of portable C with other flags.
row() {
    local isa=$1 kernel found lanes store flags=("${@:2}")
    read -r lanes store < <(lua5.4 -e 'local isa = require("gen.isa.list").get(arg[1])
print(isa.lanes, isa.store_unaligned("e", 0, "tiny_exp(" .. isa.load_unaligned("v", 0) .. ")"))' - "$isa" </dev/null)
    ((${#flags[@]})) || read -ra flags < <(lua5.4 -e 'print(table.concat(require("gen.isa.list").get(arg[1]).flags, " "))' - "$isa" </dev/null)
    "$LOOKUPC" emit gen/models/tiny.lua --isa "$isa" -o "$folder/$isa" >/dev/null
    kernel=$folder/$isa/tiny__$isa.c
    gcc -std=c99 -D_GNU_SOURCE -DSTRIDE="$stride" -DLANES="$lanes" -DSTORE="$store" -DKERNEL="\"$kernel\"" -O2 "${flags[@]}" "$folder/bound.c" -o "$folder/bound" -lm
    found=$("$folder/bound") || { echo "FAILED $isa ${flags[*]}: $found"; exit 1; }
    echo "$isa ${flags[*]}: $found"
}

row scalar -ffp-contract=off
if grep -qw fma /proc/cpuinfo; then row scalar -mfma -ffp-contract=fast; else echo "skipped: scalar with fma: this CPU has none"; fi
for isa in $(lua5.4 tests/support/isa.lua); do
    [[ $isa != scalar ]] || continue
    if [[ $here == *" $isa "* ]]; then row "$isa"; else echo "skipped: $isa: this CPU has none"; fi
done
