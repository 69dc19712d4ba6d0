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

/* Arguments of one call. */
#if defined(ISA_avx512)
enum { lanes = 16 };
static void emitted(const float *v, float *e) { _mm512_storeu_ps(e, tiny_exp(_mm512_loadu_ps(v))); }
#elif defined(ISA_avx2)
enum { lanes = 8 };
static void emitted(const float *v, float *e) { _mm256_storeu_ps(e, tiny_exp(_mm256_loadu_ps(v))); }
#else
enum { lanes = 1 };
static void emitted(const float *v, float *e) { *e = tiny_exp(*v); }
#endif

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
    for (uint32_t bits = 0; bits <= last; bits += lanes) {
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
while read -r isa needs flags; do
    if [[ $needs != any ]] && ! grep -qw "$needs" /proc/cpuinfo; then
        echo "skipped: $isa $flags: this CPU has no $needs"
        continue
    fi
    "$LOOKUPC" emit gen/models/tiny.lua --isa "$isa" -o "$folder/$isa" >/dev/null
    kernel=$(echo "$folder/$isa/tiny_sign_hash_gelu_f32__${isa}_t"*.c)
    # shellcheck disable=SC2086
    gcc -std=c99 -D_GNU_SOURCE -D"ISA_$isa" -DKERNEL="\"$kernel\"" -O2 $flags "$folder/bound.c" -o "$folder/bound" -lm
    found=$("$folder/bound") || { echo "FAILED $isa $flags: $found"; exit 1; }
    echo "$isa $flags: $found"
done <<'END'
scalar any -ffp-contract=off
scalar fma -mfma -ffp-contract=fast
avx2 avx2 -mavx2 -mfma -mf16c
avx512 avx512f -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma
END
