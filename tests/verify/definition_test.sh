#!/bin/bash
# Results of lookupc run against the definition computed by tests/verify/definition_check.py, which shares nothing with lookupc.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
lookupc=${LOOKUPC:-$PWD/build/lookupc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED definition: $*"
    exit 1
}

every=$(lua5.4 tests/effort.lua instruction_sets)
all=$(lua5.4 tests/effort.lua lookups)
count=1 turn=0
read -ra sets < <(lua5.4 tests/support/isa.lua "$lookupc")

python() { /usr/bin/python3 -c "$@"; }

# agrees NAME [OPTIONS]: compares all x and y of model NAME with the definition.
agrees() { /usr/bin/python3 tests/verify/definition_check.py "$work/$1.json" "$work/$1.safetensors" "$work/$1.x*.npy" "$work/$1.y*.npy" "${@:2}" >"$work/log" 2>&1; }

# input NAME D: 3 and 33 tokens of very different sizes, in $work/NAME.x.3.npy and $work/NAME.x.33.npy.
input() {
    [[ -e $work/$1.x.3.npy ]] || python 'import sys, numpy as np
d = int(sys.argv[2])
for tokens in 3, 33:
    random = np.random.default_rng(11)
    x = (random.standard_normal((tokens, d)) + random.standard_normal((tokens, 1))) * 10.0 ** random.uniform(-2, 2, (tokens, 1))
    np.save(f"{sys.argv[1]}.{tokens}.npy", x.astype("<f4"))' "$work/$1.x" "$2"
}

# model NAME D [OPTIONS]: runs the model file $work/NAME.lua on 3 and on 33 tokens, on every instruction set or on the next in turn, and
# compares; with effort quick only every third model.
model() {
    if ((all || count++ % 3 == 0)); then compared "$@"; fi
}

# compared NAME D [OPTIONS]: the same, every model.
compared() {
    local name=$1 d=$2 isa tokens own=("${sets[@]}")
    shift 2
    ((every)) || own=("${sets[turn++ % ${#sets[@]}]}")
    "$lookupc" plan "$work/$name.lua" --json >"$work/$name.json"
    [[ -e $work/$name.safetensors ]] || "$lookupc" sample "$work/$name.lua" --seed 7 -o "$work/$name.safetensors" >"$work/log"
    input "$name" "$d"
    for isa in "${own[@]}"; do
        for tokens in 3 33; do
            "$lookupc" run "$work/$name.lua" --weights "$work/$name.safetensors" --input "$work/$name.x.$tokens.npy" --output "$work/$name.y.$tokens.npy" --isa "$isa" --cflags -O0 "$@" >"$work/log"
        done
        agrees "$name" "$@" || fail "$name, $isa: $(cat "$work/log")"
    done
    echo "ok     definition: $name: $(tail -1 "$work/log")"
}

cp gen/models/tiny.lua "$work/tiny.lua"
cat >"$work/dense.lua" <<'END'
return { name = "dense", d = 24, d_out = 40, h = 6, tau = 5, projection = { kind = "dense" }, score = "softmax" }
END
cat >"$work/scaled.lua" <<'END'
return { name = "scaled", d = 32, h = 16, tau = 6, projection = { kind = "bh4", block = 8 }, score = "gelu", scale = "1/h" }
END
cat >"$work/odd.lua" <<'END'
return { name = "odd", d = 37, d_out = 11, h = 23, tau = 7, projection = { kind = "bh4", block = 4, decay = 0.25 }, score = "softmax",
    norm = { kind = "layernorm", eps = 1e-3 } }
END
cat >"$work/one.lua" <<'END'
return { name = "one", d = 30, d_out = 45, h = 21, tau = 6, projection = { kind = "bh4", block = 8 }, score = "one", norm = { kind = "layernorm" } }
END
cat >"$work/probes.lua" <<'END'
return { name = "probes", d = 24, d_out = 33, h = 7, tau = 5, neighbours = 3, projection = { kind = "dense" }, score = "one", scale = "1/h" }
END
cat >"$work/deep.lua" <<'END'
return { name = "deep", d = 3, h = 2, tau = 16, projection = { kind = "dense" }, score = "gelu", norm = { kind = "layernorm" } }
END
cat >"$work/whole.lua" <<'END'
return { name = "whole", d = 50, h = 5, tau = 1, projection = { kind = "bh4", block = 64, decay = 1 }, score = "softmax" }
END
cat >"$work/narrow.lua" <<'END'
return { name = "narrow", d = 3, h = 16, tau = 1, projection = { kind = "bh4", block = 4, decay = 1 }, score = "gelu" }
END
cat >"$work/layer.lua" <<'END'
return { name = "layer", d = 20, h = 9, tau = 3, projection = { kind = "bh4", block = 16 }, score = "gelu", norm = { kind = "layernorm" } }
END
cat >"$work/near.lua" <<'END'
return { name = "near", d = 40, d_out = 30, h = 19, tau = 6, neighbours = 3, projection = { kind = "bh4", block = 16 }, score = "gelu",
    norm = { kind = "layernorm" } }
END
cat >"$work/most.lua" <<'END'
return { name = "most", d = 20, d_out = 33, h = 5, tau = 9, neighbours = 100, projection = { kind = "dense" }, score = "softmax", scale = "1/h" }
END
cat >"$work/all.lua" <<'END'
return { name = "all", d = 64, h = 18, tau = 4, neighbours = 16, projection = { kind = "bh4", block = 16 }, score = "gelu" }
END

model dense 24
model scaled 32
model odd 37
model one 30
model probes 24
model deep 3
model whole 50
# Fewer rows a repeat than a vector has lanes: on all instruction sets.
"$lookupc" verify "$work/narrow.lua" >"$work/log" 2>&1 || fail "narrow: $(cat "$work/log")"
echo "ok     definition: narrow: verify"
model near 40
model most 20
model all 64
for type in bf16 f16 i8 e4m3 i4; do
    [[ $type == e4m3 ]] || model odd 37 --tables $type # compared below
    model near 40 --tables $type
    ((every)) || continue
    model tiny 64 --tables $type
    model scaled 32 --tables $type
done
model tiny 64 --projection bf16
model dense 24 --projection bf16
model odd 37 --projection bf16 --tables i8
model deep 3 --projection bf16

# Results of rounded weights are not those of the weights that were given.
compared odd 37 --tables e4m3
agrees odd && fail "the type of the tables makes no difference"
compared whole 50 --projection bf16
agrees whole && fail "the type of the projection makes no difference"

# Integers, which take one row of a table or two, of inputs in their range; with the wrong number of rows they are not right.
python 'import sys, numpy as np
np.save(sys.argv[1], np.random.default_rng(11).standard_normal((64, 64)).astype("<f4"))' "$work/x.64.npy"
"$lookupc" sample gen/models/kws.lua --seed 7 -o "$work/kws.safetensors" >"$work/log"
for rows in 1 2; do
    sed "s/score = /neighbours = $rows, score = /" gen/models/kws.lua >"$work/kws$rows.lua"
    "$lookupc" plan "$work/kws$rows.lua" --json >"$work/kws$rows.json"
    "$lookupc" run "$work/kws$rows.lua" --arithmetic integer --weights "$work/kws.safetensors" --input "$work/x.64.npy" --output "$work/kws$rows.y.npy" >"$work/log"
    ln -f "$work/kws.safetensors" "$work/kws$rows.safetensors"
    ln -f "$work/x.64.npy" "$work/kws$rows.x.npy"
    agrees kws$rows --arithmetic integer || fail "integers, rows of a table: $rows: $(cat "$work/log")"
    echo "ok     definition: integers, rows of a table: $rows: $(tail -1 "$work/log")"
done
cp "$work/kws1.y.npy" "$work/kws2.y.npy"
agrees kws2 --arithmetic integer && fail "the second row of each table makes no difference"

# A checkpoint of another project: its prefix, its order in the blocks.
"$lookupc" sample "$work/layer.lua" --seed 2 --prefix encoder.layer.0.FFN. -o "$work/layer.safetensors" >"$work/log"
compared layer 20 --prefix encoder.layer.0.FFN. --blocks-in-out
agrees layer --prefix encoder.layer.0.FFN. && fail "the order in the blocks makes no difference"

# The check can fail: y of another token, one token 1e-4 off, one output negated, one table without its score.
compared tiny 64
cp "$work/tiny.y.33.npy" "$work/right.npy"
changes=('y[[0, 1]] = y[[1, 0]]' 'y[32] *= 1.0001' 'y[5, 0] = -y[5, 0]' 'y[:] = y[0]' 'y[3, 3] = np.nan')
python 'import sys, numpy as np
for number, change in enumerate(sys.argv[2:]):
    y = np.load(sys.argv[1] + "/right.npy")
    exec(change)
    np.save(f"{sys.argv[1]}/wrong.{number}.npy", y)' "$work" "${changes[@]}"
for number in "${!changes[@]}"; do
    cp "$work/wrong.$number.npy" "$work/tiny.y.33.npy"
    agrees tiny && fail "${changes[number]} goes unnoticed"
done
echo "ok     definition: five kinds of wrong results are noticed"
