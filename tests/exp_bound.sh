#!/bin/bash
# The emitted exp keeps the error bound that its comment states for every float32 argument, with and without fused
# multiply-add.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$LOOKUPC" emit gen/models/tiny.lua --isa scalar -o "$folder" >/dev/null
cat >"$folder/bound.c" <<END
#include "$(cd "$folder" && echo tiny_sign_hash_gelu_f32__scalar_t*.c)"
#include <math.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    double worst = 0, at = 0;
    const float end = 87.0f;
    uint32_t last;
    memcpy(&last, &end, sizeof last);
    for (uint32_t bits = 0; bits <= last; ++bits) {
        float v;
        memcpy(&v, &bits, sizeof v);
        const double exact = exp(-(double) v), error = fabs((double) tiny_exp(-v) - exact) / exact;
        if (!(error <= worst)) {
            worst = error;
            at = -(double) v;
        }
    }
    const int clamped = tiny_exp(-100.0f) == tiny_exp(-87.0f) && tiny_exp(-INFINITY) == tiny_exp(-87.0f);
    printf("worst relative error %.3g = 2^%.2f at %g; %s below -87; NaN %s\n", worst, log2(worst), at,
        clamped ? "constant" : "NOT CONSTANT", isnan(tiny_exp(NAN)) ? "stays" : "IS LOST");
    return !(worst < 0x1p-23 && clamped && isnan(tiny_exp(NAN)));
}
END
for flags in "-ffp-contract=off" "-mfma -ffp-contract=fast"; do
    if [[ $flags == *fma* ]] && ! grep -qw fma /proc/cpuinfo; then
        echo "skipped: $flags: this CPU has no fma"
        continue
    fi
    # shellcheck disable=SC2086
    gcc -std=c99 -D_GNU_SOURCE -O2 $flags "$folder/bound.c" -o "$folder/bound" -lm
    echo "$flags: $("$folder/bound")"
done
