#!/bin/bash
# The portable conversion to half precision gives the nearest one, ties to even, for what lies between any two: below, in and above the middle.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/m.lua" <<'END'
return { name = "m", d = 8, heads = 1, layers = 1, vocab = 2, attention = { context = 2 }, ffn = { kind = "mlp", f = 8, activation = "relu" } }
END
"$LOOKUPC" emit "$folder/m.lua" --isa scalar --cache f16 -o "$folder" >/dev/null
cat >"$folder/halves.c" <<'END'
#include "m_runtime.h"
#include <math.h>
#include <stdio.h>

int main(void)
{
    unsigned checked = 0, wrong = 0;
    for (unsigned sign = 0; sign <= 0x8000; sign += 0x8000)
        for (unsigned half = 0; half < 0x7bff; ++half) {
            const float low = m_from_f16((uint16_t) (sign | half)), high = m_from_f16((uint16_t) (sign | (half + 1))), middle = low + (high - low) / 2;
            wrong += m_to_f16(low) != (sign | half);
            wrong += m_to_f16(nextafterf(middle, low)) != (sign | half);
            wrong += m_to_f16(middle) != (sign | (half + half % 2));
            wrong += m_to_f16(nextafterf(middle, high)) != (sign | (half + 1));
            checked += 4;
        }
    const int nan = (m_to_f16(NAN) & 0x7fff) > 0x7c00;
    printf("%u numbers, %u wrong; NaN %s\n", checked, wrong, nan ? "stays" : "IS LOST");
    return !(checked > 200000 && wrong == 0 && m_to_f16(65504.0f) == 0x7bff && nan);
}
END
gcc -std=c99 -O2 -Wall -Wextra -Werror "$folder/halves.c" -o "$folder/halves" -lm
"$folder/halves"
