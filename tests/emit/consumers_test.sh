#!/bin/bash
# Emitted bundles as another project uses them: every file compiled by itself without a warning, linked, called, compared.
set -euo pipefail
unset LOOKUPC_CPU # emitted code reads none
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
lookupc=${LOOKUPC:-$PWD/build/lookupc}
consumers=$PWD/tests/consumers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion -Wstrict-prototypes -Wmissing-prototypes
    -Wundef -Wcast-align -Wcast-qual -Wvla -Wfloat-conversion -Wswitch-default -Werror)

fail() {
    echo "FAILED consumers: $*"
    exit 1
}

ok() { echo "ok     consumers: $* ($SECONDS s from the start)"; }

python() { /usr/bin/python3 -c "$@"; }

read -ra sets < <(lua5.4 tests/support/isa.lua)
here=" $(lua5.4 tests/support/isa.lua "$lookupc") "

# can ISA: whether this CPU and its operating system run it.
can() { [[ $here == *" $1 "* ]]; }

# thinned: whether this one of many alike is compiled: each, or with effort quick every fourth.
all=$(lua5.4 tests/effort.lua bundled)
count=1
thinned() { ((all || count++ % 4 == 0)); }

# in_turn: puts into `turn` the option of emit for the next of the instruction sets that run here; none with effort full.
read -ra runnable <<<"$here"
every=$(lua5.4 tests/effort.lua instruction_sets)
turn=() turns=0
in_turn() {
    turn=()
    ((every)) || turn=(--isa "${runnable[turns++ % ${#runnable[@]}]}")
}

compilers=(gcc clang)
level=-O2 # of what is compiled in one more way, or for a CPU that does not run it here
(($(lua5.4 tests/effort.lua compilers))) || compilers=(clang) level=-O0

# bundle NAME MODEL [EMIT OPTIONS]: emits into $work/NAME; flags.txt there has a line for each source: file, flags.
bundle() {
    "$lookupc" emit "$2" -o "$work/$1" "${@:3}" >"$work/log" || fail "emit $1"
    awk -F'"' '/^ *"-/ { flags = flags " " $2 } /^ *"name"/ { if ($4 ~ /\.c$/) print $4 flags; flags = "" } /^  \]/ { exit }' \
        "$work/$1/MANIFEST.json" >"$work/$1/flags.txt"
    [[ -s $work/$1/flags.txt ]] || fail "no sources in the manifest of $1"
}

bundle_in_turn() {
    in_turn
    bundle "$@" "${turn[@]}"
}

# compile BUNDLE OBJECTS COMPILER FLAGS...: every source by itself, two at a time.
compile() {
    local bundle=$work/$1 objects=$work/$2
    mkdir -p "$objects"
    while read -r file flags; do
        printf '%s -c %s -o %s\0' "${*:3} $flags" "$bundle/$file" "$objects/${file%.c}.o"
    done <"$bundle/flags.txt" | xargs -0 -P2 -I{} bash -c '{}' || fail "$1: ${*:3}"
}

# ## Compiling

other=$work/other.lua
cat >"$other" <<'END'
return { name = "other", d = 13, d_out = 21, h = 5, tau = 3, projection = { kind = "dense" }, score = "softmax", scale = "1/h" }
END
# Three rows of a table, and all.
cat >"$work/near.lua" <<'END'
return { name = "near", d = 24, d_out = 37, h = 19, tau = 5, neighbours = 3, projection = { kind = "bh4", block = 16 }, score = "gelu" }
END
cat >"$work/all.lua" <<'END'
return { name = "all", d = 16, h = 9, tau = 4, neighbours = 16, projection = { kind = "dense" }, score = "softmax", norm = { kind = "layernorm" } }
END
bundle tiny gen/models/tiny.lua
bundle_in_turn near "$work/near.lua" --tables i8
bundle_in_turn all "$work/all.lua"
bundle_in_turn base gen/models/roberta_base.lua
bundle_in_turn other "$other"

# Blocks of transformers: fused and gated; with norms and skip connections, all tokens seeing all; parallel, with a window.
cat >"$work/fused.lua" <<'END'
return { name = "fused", d = 40, heads = 4, kv_heads = 2, layers = 2, vocab = 9, ffn = { kind = "glu", f = 50, activation = "silu" },
    attention = { eliminate = "QP", rope = { share = 0.4, pairs = "interleaved" }, context = 70 } }
END
cat >"$work/post.lua" <<'END'
return { name = "post", d = 32, heads = 2, layers = 1, vocab = 9, checkpoint = "roberta", skip = true, norm = { kind = "layernorm", place = "post" },
    ffn = { kind = "mlp", f = 64, activation = "gelu" }, attention = { causal = false, context = 33 } }
END
cat >"$work/side.lua" <<'END'
return { name = "side", d = 24, heads = 3, layers = 2, vocab = 9, parallel = true, skip = true, norm = { kind = "rmsnorm" },
    ffn = { kind = "mlp", f = 33, activation = "gelu_tanh" }, attention = { eliminate = "VP", window = 10, context = 64 } }
END
bundle_in_turn fused "$work/fused.lua" --type bf16
bundle_in_turn post "$work/post.lua"
bundle_in_turn side "$work/side.lua" --type i8 --cache f16
cat >"$work/ring.lua" <<'END'
return { name = "ring", d = 40, heads = 4, kv_heads = 2, layers = 1, vocab = 9, ffn = { kind = "glu", f = 50, activation = "silu" },
    attention = { eliminate = "QP", rope = {}, window = 33, context = 70 } }
END
bundle_in_turn ring "$work/ring.lua" --type f16 --cache i8
# With lookup FFNs: tables that deliver q, k and v, of i8 beside a ring and without any product; tables that only hold q.
cat >"$work/tables.lua" <<'END'
return { name = "tables", d = 40, heads = 4, kv_heads = 2, layers = 3, vocab = 9, attention = { eliminate = "QKVP", rope = {}, window = 33, context = 70 },
    ffn = { kind = "lookup", h = 9, tau = 4, projection = { kind = "dense" }, score = "softmax", neighbours = 2 } }
END
cat >"$work/held.lua" <<'END'
return { name = "held", d = 24, heads = 2, layers = 2, vocab = 9, attention = { eliminate = "Q", context = 33 },
    ffn = { kind = "lookup", h = 9, tau = 5, projection = { kind = "bh4", block = 8 }, score = "gelu" } }
END
bundle_in_turn tables "$work/tables.lua" --type i8
bundle_in_turn held "$work/held.lua" --type bf16

# What is called later is compiled by both compilers, those of the rest whose turn it is by one of them; or all by both, with full effort.
number=0
for name in tiny base other near all fused post side ring tables held; do
    by=(gcc clang)
    if [[ ${#compilers[@]} != 2 && $name != tiny && $name != other ]]; then
        thinned || continue
        by=("${by[number++ % 2]}")
    fi
    for cc in "${by[@]}"; do
        compile $name "$name.$cc" "$cc" -std=c99 -O2 -ffreestanding "${warnings[@]}"
        [[ $name == base || (${#compilers[@]} == 1 && $cc == gcc) ]] || compile $name "$name.$cc.c11" "$cc" -std=c11 -fsyntax-only "${warnings[@]}"
    done
done
ok "every file compiles by itself without a warning"

for cxx in g++ clang++; do
    printf '#include "tiny.h"\n#include "other.h"\n#include "tiny.h"\n#include "fused.h"\nint main() { return TINY_OK + OTHER_OK + FUSED_OK; }\n' |
        $cxx -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$work/tiny" -I"$work/other" -I"$work/fused" -fsyntax-only -x c++ - || fail "header in $cxx"
done
ok "headers are C++ too"

# stops TEXT FILE COMPILER FLAGS...: the compiler must stop at our #error with this text, and at nothing before it.
stops() {
    local text=$1 file=$2
    shift 2
    if "$@" -std=c99 -fsyntax-only -Wfatal-errors "$file" 2>"$work/log"; then fail "${file##*/} compiles with $*"; fi
    [[ $(grep -m1 'error:' "$work/log") == *"error: "*"\"$text"* ]] || fail "${file##*/} with $*: $(grep -m1 'error:' "$work/log")"
}
for cc in gcc clang; do
    for file in "$work"/tiny/*__avx2*.c; do
        thinned || continue
        stops "compile this file with" "$file" $cc
        stops "compile this file with" "$file" $cc -mavx2
        stops "compile this file with" "$file" $cc -mfma -mavx
    done
    for file in "$work"/tiny/*__avx512*.c; do
        thinned || continue
        stops "compile this file with" "$file" $cc -mavx2 -mfma
        stops "compile this file with" "$file" $cc -mavx512f -mfma
    done
done
for cc in gcc clang; do
    for file in "$work"/tiny/*__scalar*.c; do stops "compile without -ffast-math" "$file" $cc -O2 -ffast-math; done
done
ok "wrong flags of the instruction set and -ffast-math stop with #error"

# Portable C99 is portable: a bundle of scalar for CPUs that are not this one.
bundle scalar gen/models/tiny.lua --isa scalar
bundle scalar_near "$work/near.lua" --isa scalar
bundle scalar_all "$work/all.lua" --isa scalar
bundle scalar_fused "$work/fused.lua" --isa scalar --cache f16
bundle scalar_ring "$work/ring.lua" --isa scalar --cache i8
for target in thumbv6m-none-eabi thumbv7em-none-eabihf aarch64-none-elf riscv32-none-elf powerpc64-none-elf wasm32 i386-none-elf; do
    for name in scalar scalar_near scalar_all scalar_fused scalar_ring; do
        thinned || continue
        compile $name $name.$target clang --target=$target -std=c99 $level -ffreestanding "${warnings[@]}"
    done
done
ok "the portable kernels compile for ARM, RISC-V, PowerPC, WebAssembly"

# Weights as a part of a library, in each format of object files. Nothing of those systems is needed: a name that C and assembler
# spell differently would be left undefined.
bundle weights gen/models/tiny.lua --isa scalar --single-file --linked
"$lookupc" sample gen/models/tiny.lua -o "$work/weights/w.safetensors" >"$work/log"
"$lookupc" pack gen/models/tiny.lua --weights "$work/weights/w.safetensors" -o "$work/weights/tiny.bin" >"$work/log"
while read -r target linker; do
    read -ra linker <<<"$linker"
    objects=()
    for file in tiny tiny_linked; do
        clang --target="$target" -std=c99 -ffreestanding -fno-stack-protector "${warnings[@]}" -I"$work/weights" -c "$work/weights/$file.c" \
            -o "$work/weights/$target.$file.o" || fail "$file.c for $target"
        objects+=("$work/weights/$target.$file.o")
    done
    if command -v "${linker[0]}" >/dev/null; then
        "${linker[@]}" "${objects[@]}" -o "$work/weights/$target" 2>"$work/log" || fail "weights in a library for $target: $(head -1 "$work/log")"
        python 'import sys; sys.exit(open(sys.argv[1], "rb").read() not in open(sys.argv[2], "rb").read())' \
            "$work/weights/tiny.bin" "$work/weights/$target" || fail "$target: the library lacks the weights"
    else
        echo "skipped: consumers: ${linker[0]} does not link for $target"
    fi
done <<'END'
aarch64-linux-gnu ld.lld-19 -shared
arm64-apple-macos11 ld64.lld-19 -arch arm64 -platform_version macos 11 11 -dylib
x86_64-apple-macos11 ld64.lld-19 -arch x86_64 -platform_version macos 11 11 -dylib
x86_64-w64-mingw32 ld.lld-19 -m i386pep -shared -e tiny_bind_linked
x86_64-pc-windows-msvc ld.lld-19 -m i386pep -shared -e tiny_bind_linked -Xlink=/alternatename:_fltused=tiny_bind
END
ok "weights are a part of ELF, Mach-O and COFF"

# Such a program for Windows, of all kernels in one file, says what the one for this system says.
if (($(lua5.4 tests/effort.lua programs))) && command -v x86_64-w64-mingw32-gcc >/dev/null && command -v wine >/dev/null; then
    bundle windows gen/models/tiny.lua --single-file --linked
    program=(-w -std=c11 -O2 -I"$work/windows" -I"$work/weights" "$consumers/cmake/main.c" "$work"/windows/*.c -o)
    gcc "${program[@]}" "$work/windows/here"
    x86_64-w64-mingw32-gcc "${program[@]}" "$work/windows/there.exe" || fail "a program for Windows"
    "$work/windows/here" >"$work/windows/here.txt"
    (cd "$work/windows" && WINEPREFIX=$work/wine WINEDEBUG=-all wine ./there.exe | tr -d '\r' >there.txt) || fail "a program for Windows stops"
    cmp "$work/windows/here.txt" "$work/windows/there.txt" || fail "a program for Windows says something else"
    ok "a program for Windows, by mingw, under wine"
else
    echo "skipped: consumers: no program for Windows is run: full effort, x86_64-w64-mingw32-gcc and wine do it"
fi

for cc in gcc clang; do
    for name in tiny base other near all fused post side ring; do
        [[ -e $work/$name.$cc ]] || continue
        prefix=$name
        [[ $name == base ]] && prefix=roberta_base
        nm -u "$work/$name.$cc"/*.o | grep -v -e '^$' -e '\.o:$' -e " U ${prefix}_" && fail "$name: $cc needs these symbols"
        nm --defined-only "$work/$name.$cc"/*.o | grep -E ' [BbDdCGgSs] ' && fail "$name: $cc: these can be written"
        nm --defined-only --extern-only "$work/$name.$cc"/*.o | grep -v -e '^$' -e '\.o:$' -e " ${prefix}_" && fail "$name: $cc: these lack the prefix"
        size -A "$work/$name.$cc"/*.o | grep -E '^\.(data|bss)[^ ]* +[1-9]' | grep -v '^\.data\.rel\.ro' && fail "$name: $cc: writable sections"
    done
done
ok "no library, no writable data, no symbol without the model's prefix"

# ## Calling

for name in tiny other; do
    model=gen/models/tiny.lua
    [[ $name == other ]] && model=$other
    "$lookupc" sample "$model" --seed 3 -o "$work/$name.safetensors" >"$work/log"
    "$lookupc" pack "$model" --weights "$work/$name.safetensors" -o "$work/$name.bin" >"$work/log"
    python 'import sys, numpy as np
x = np.random.default_rng(1).standard_normal((7, int(sys.argv[2]))).astype("<f4")
np.save(sys.argv[1] + ".x.npy", x)
x.tofile(sys.argv[1] + ".x")' "$work/$name" "$([[ $name == tiny ]] && echo 64 || echo 13)"
    "$lookupc" run "$model" --weights "$work/$name.safetensors" --input "$work/$name.x.npy" --output "$work/$name.y.npy" >"$work/log"
done
cat "$work/tiny.x" "$work/other.x" >"$work/both.x"

# same RESULT NAME...: the raw floats in RESULT are the outputs of lookupc run for the named models.
same() {
    python 'import sys, numpy as np
y = np.fromfile(sys.argv[1], "<f4")
expected = np.concatenate([np.load(path).ravel() for path in sys.argv[2:]])
good = y.shape == expected.shape and np.abs(expected).min() > 0 and np.linalg.norm(y - expected) <= 1e-5 * np.linalg.norm(expected)
sys.exit(0 if good else 1)' \
        "$1" "${@:2}" || fail "${1##*/}: differs from lookupc run"
}

host=(-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wpedantic -Werror)
for cc in gcc clang; do
    $cc "${host[@]}" -I"$work/tiny" "$consumers/example.c" "$work/tiny.$cc"/*.o -o "$work/example"
    (cd "$work" && ./example <tiny.x >example.y) || fail "example: exit status $?"
    same "$work/example.y" "$work/tiny.y.npy"

    $cc "${host[@]}" -I"$work/tiny" "$consumers/bind_errors.c" "$work/tiny.$cc"/*.o -o "$work/bind_errors"
    "$work/bind_errors" "$work/tiny.bin" || fail "bind_errors with $cc"

    $cc "${host[@]}" -I"$work/tiny" -I"$work/other" "$consumers/two_models.c" "$work/tiny.$cc"/*.o "$work/other.$cc"/*.o -o "$work/two_models"
    "$work/two_models" "$work/tiny.bin" "$work/other.bin" <"$work/both.x" >"$work/two_models.y" || fail "two_models: exit status $?"
    same "$work/two_models.y" "$work/tiny.y.npy" "$work/other.y.npy"

    cxx=g++
    [[ $cc == clang ]] && cxx=clang++
    $cxx -std=c++11 -O2 -Wall -Wextra -Werror -I"$work/tiny" -I"$work/other" -x c++ "$consumers/two_models.c" -x none "$work/tiny.$cc"/*.o "$work/other.$cc"/*.o -o "$work/two_models"
    "$work/two_models" "$work/tiny.bin" "$work/other.bin" <"$work/both.x" >"$work/two_models.y" || fail "two_models in C++: exit status $?"
    same "$work/two_models.y" "$work/tiny.y.npy" "$work/other.y.npy"
done
ok "example, errors of bind, two models in one program of C or C++"

for cc in "${compilers[@]}"; do
    $cc "${host[@]}" -I"$work/tiny" "$consumers/denormals.c" "$work/tiny.$cc"/*.o -o "$work/denormals"
    "$work/denormals" || fail "denormals with $cc"
done
ok "denormal numbers are flushed and the state before comes back"

# ## Several bundles in one program

# Of one model: a and b with other weights, c with other types as well, d as c by another name.
"$lookupc" sample gen/models/tiny.lua --seed 4 -o "$work/b.safetensors" >"$work/log"
cp "$work/tiny.safetensors" "$work/a.safetensors"
cp "$work/b.safetensors" "$work/c.safetensors"
cp "$work/b.safetensors" "$work/d.safetensors"
printf '#include <stdio.h>\ndouble one(void), other(void);\nint main(void) { printf("%%.4f %%.4f\\n", one(), other()); }\n' >"$work/both.c"
declare -A value
for name in a b c d; do
    types=() called=tiny
    [[ $name == a || $name == b ]] || types=(--tables i8)
    [[ $name == d ]] && called=renamed
    mkdir "$work/lib.$name"
    cp "$consumers/plugin.c" "$work/lib.$name"
    "$lookupc" emit gen/models/tiny.lua --isa scalar "${types[@]}" --linked --rename $called --single-file -o "$work/lib.$name" >"$work/log"
    "$lookupc" pack gen/models/tiny.lua "${types[@]}" --weights "$work/$name.safetensors" -o "$work/lib.$name/$called.bin" >"$work/log"
    sed -i "s/tiny/$called/g; s/TINY/${called^^}/g" "$work/lib.$name/plugin.c"
    function=other
    [[ $name == a ]] && function=one
    (cd "$work/lib.$name" && gcc -std=c11 -O0 -fPIC -Wall -Werror -DPLUGIN=$function -I. -c ./*.c && ar rc "$work/libmy_$name.a" ./*.o &&
        gcc -shared ./*.o -o "$work/libmy_$name.so") || fail "library $name"
    [[ $(nm -D --defined-only "$work/libmy_$name.so" | sed 's/.* //') == "$function" ]] || fail "library $name shows more than $function"
done
for name in b c d; do
    gcc "$work/both.c" -L"$work" -lmy_a -lmy_$name -Wl,-rpath,"$work" -o "$work/both"
    value[$name]=$("$work/both")
done
[[ ${value[b]} != "${value[c]}" && ${value[c]} == "${value[d]}" && ${value[b]% *} != "${value[b]#* }" ]] || fail "two libraries: ${value[*]}"
gcc "$work/both.c" "$work/libmy_a.a" "$work/libmy_d.a" -o "$work/both"
[[ $("$work/both") == "${value[d]}" ]] || fail "two names in one program: $("$work/both"), expected ${value[d]}"
for order in "a c" "c a"; do
    read -ra libraries <<<"$order"
    ! gcc "$work/both.c" "$work/libmy_${libraries[0]}.a" "$work/libmy_${libraries[1]}.a" -o "$work/both" 2>"$work/log" || fail "libraries $order of other types link"
    grep -q "multiple definition of .tiny_bind'" "$work/log" || fail "libraries $order: $(head -1 "$work/log")"
done
gcc -I"$work/lib.c" -DPLUGIN=one -c "$consumers/plugin.c" -o "$work/stale.o"
! gcc "$work/both.c" "$work/stale.o" "$work/libmy_a.a" -o "$work/both" 2>"$work/log" || fail "a header of other types links"
grep -q "undefined reference to .tiny_bind_linked_for_" "$work/log" || fail "a header of other types: $(head -1 "$work/log")"
ok "two libraries of one model use their own weights and types, and two bundles of one name in a program do not link"

(cd "$work/lib.a" && gcc -std=c11 -O0 -fPIC -DTINY_SHARED -I. -shared tiny.c tiny_linked.c -o "$work/shared.so")
nm -D --defined-only "$work/shared.so" | sed -n 's/.* //; s/_for_[0-9a-f]*//; p' | sort -u >"$work/shared.txt"
printf 'tiny_%s\n' bind bind_linked error ffn flush_denormals sizes | cmp - "$work/shared.txt" || fail "a shared library shows $(tr '\n' ' ' <"$work/shared.txt")"
ok "a shared library offers what the header has, and nothing else"

# ## Threads

# Token counts around those from which one more thread gets a part, as the sources have them.
mapfile -t least < <(sed -n 's/.*tiny_split([a-z0-9_]*, [0-9]*, \([0-9]*\), .*/\1/p' "$work"/tiny/*.c | sort -nu)
counts=(0 1 5)
for n in "${least[@]}"; do
    for parts in 1 2 3 4; do counts+=($((parts * n - 1)) $((parts * n)) $((parts * n + 1)) $((parts * n + 37))); done
done
((${#counts[@]} > 15)) || fail "no number of tokens from which calls are split"

for cc in gcc clang; do
    [[ $cc == gcc || ${#compilers[@]} == 2 ]] || continue
    openmp=(-fopenmp -DTINY_OPENMP=3)
    if ! echo 'int main(void) { return 0; }' | $cc "${openmp[@]}" -x c - -o "$work/openmp" 2>"$work/log"; then
        echo "skipped: consumers: threads: $cc has no OpenMP library"
        continue
    fi
    compile tiny tiny.$cc.threads $cc -std=c99 $level "${openmp[@]}" "${warnings[@]}"
    $cc "${host[@]}" -I"$work/tiny" "$consumers/threads.c" "$work/tiny.$cc"/*.o -o "$work/one_thread"
    $cc "${host[@]}" "${openmp[@]}" -I"$work/tiny" "$consumers/threads.c" "$work/tiny.$cc.threads"/*.o -o "$work/threads"
    "$work/one_thread" "$work/tiny.bin" "${counts[@]}" >"$work/one_thread.y" || fail "one_thread: exit status $?"
    "$work/threads" "$work/tiny.bin" "${counts[@]}" >"$work/threads.y" || fail "threads with $cc: exit status $?"
    cmp "$work/one_thread.y" "$work/threads.y" || fail "three threads with $cc give other bytes than one"
    OMP_THREAD_LIMIT=2 KMP_WARNINGS=0 "$work/threads" "$work/tiny.bin" "${counts[@]}" | cmp - "$work/one_thread.y" || fail "parts that share a thread give other bytes with $cc"

    # A caller that forgets the macro would give too little scratch: it must not link.
    $cc "${host[@]}" -fopenmp -I"$work/tiny" "$consumers/threads.c" "$work/tiny.$cc.threads"/*.o -o "$work/mixed" 2>"$work/log" && fail "$cc links files with and without TINY_OPENMP"
    grep -q "undefined reference to .tiny_ffn'" "$work/log" || fail "with and without TINY_OPENMP: $(head -1 "$work/log")"
    nm --defined-only --extern-only "$work/tiny.$cc.threads"/*.o | grep -v -e '^$' -e '\.o:$' -e " tiny_" && fail "threads: $cc: these lack the prefix"
    ok "$cc: three threads give the bytes of one, for ${#counts[@]} numbers of tokens and in place"
done
for cc in gcc clang; do
    stops "TINY_OPENMP needs -fopenmp" "$work/tiny/tiny.c" $cc -DTINY_OPENMP=3
    for wrong in 0 -1 1025; do stops "TINY_OPENMP: must be" "$work/tiny/tiny.c" $cc -fopenmp -DTINY_OPENMP=$wrong; done
done
for cxx in g++ clang++; do
    printf '#include "tiny.h"\nint main() { return TINY_SCRATCH_BYTES > 0 ? TINY_OK : 1; }\n' |
        $cxx -std=c++11 -Wall -Wextra -Wpedantic -Werror -fopenmp -DTINY_OPENMP=3 -I"$work/tiny" -fsyntax-only -x c++ - || fail "header for threads in $cxx"
done
ok "wrong numbers of threads stop with #error, the header is C++ too"

# ## Types of tables and projection

for options in "--tables bf16" "--tables f16" "--tables i8" "--tables e4m3" "--projection bf16"; do
    read -ra words <<<"$options"
    thinned || continue
    type=${options#--}
    type=${type/ /.}
    for cc in "${compilers[@]}"; do
        for name in tiny other; do
            model=gen/models/tiny.lua
            [[ $name == other ]] && model=$other
            bundle_in_turn "$name.$type" "$model" "${words[@]}"
            [[ $name == tiny ]] && of_tiny=("${turn[@]}") # its instruction set: others may round otherwise
            compile "$name.$type" "$name.$type.$cc" "$cc" -std=c99 -O2 -ffreestanding "${warnings[@]}"
            nm -u "$work/$name.$type.$cc"/*.o | grep -v -e '^$' -e '\.o:$' -e " U ${name}_" && fail "$name, $options: $cc needs these symbols"
        done
        "$lookupc" pack gen/models/tiny.lua --weights "$work/tiny.safetensors" "${words[@]}" -o "$work/tiny.bin" >"$work/log"
        $cc "${host[@]}" -I"$work/tiny.$type" "$consumers/example.c" "$work/tiny.$type.$cc"/*.o -o "$work/example"
        (cd "$work" && ./example <tiny.x >example.y) || fail "example with $options: exit status $?"
        "$lookupc" run gen/models/tiny.lua "${words[@]}" "${of_tiny[@]}" --weights "$work/tiny.safetensors" --input "$work/tiny.x.npy" --output "$work/tiny.y.$type.npy" >"$work/log"
        same "$work/example.y" "$work/tiny.y.$type.npy"
    done
    printf '#include "tiny.h"\n#include "tiny.h"\nint main() { return TINY_OK; }\n' |
        g++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$work/tiny.$type" -fsyntax-only -x c++ - || fail "header in C++ with $options"
    bundle "portable.$type" gen/models/tiny.lua "${words[@]}" --isa scalar
    for target in thumbv6m-none-eabi aarch64-none-elf powerpc64-none-elf; do
        thinned || continue
        compile "portable.$type" "portable.$type.$target" clang --target=$target -std=c99 $level -ffreestanding "${warnings[@]}"
    done
done
bundle f16 gen/models/tiny.lua --tables f16 --isa avx2
for file in "$work"/f16/*__avx2*.c; do stops "compile this file with" "$file" gcc -mavx2 -mfma; done
"$lookupc" pack gen/models/tiny.lua --weights "$work/tiny.safetensors" -o "$work/tiny.bin" >"$work/log"
ok "tables in bf16, f16, i8 and e4m3, a projection in bf16: no warning, no library, the results of lookupc run"

# ## Instruction sets

for isa in "${sets[@]}"; do
    bundle "$isa" gen/models/tiny.lua --isa "$isa"
    compile "$isa" "$isa.gcc" gcc -std=c99 $level "${warnings[@]}"
    if [[ $isa == scalar ]]; then
        grep -lE 'cpuid|xgetbv' "$work/$isa"/*.[ch] && fail "$isa alone asks for the CPU"
        objdump -d "$work/$isa.gcc"/*.o | grep -E '\b(cpuid|xgetbv)\b' && fail "$isa alone asks for the CPU"
    fi
    gcc "${host[@]}" -I"$work/$isa" "$consumers/example.c" "$work/$isa.gcc"/*.o -o "$work/example"
    if can "$isa"; then
        (cd "$work" && ./example <tiny.x >"$isa.y") || fail "$isa alone: exit status $?"
        same "$work/$isa.y" "$work/tiny.y.npy"
    else
        status=0
        (cd "$work" && ./example <tiny.x >"$isa.y") || status=$?
        ((status > 0 && status < 128)) || fail "$isa alone, on a CPU without it: exit status $status"
        echo "skipped: consumers: $isa, but for what bind returns"
    fi
done
ok "a bundle of one instruction set is called, or refused by bind on a CPU without it"

bundle vector gen/models/tiny.lua --isa avx2,avx512,avx512_bf16
compile vector vector.gcc gcc -std=c99 $level "${warnings[@]}"
number=1
for name in tiny vector avx2; do
    gcc -std=c99 -O2 -I"$consumers/fake_cpu" '-D__asm__(...)=FAKE_XGETBV' -c "$work/$name/tiny.c" -o "$work/$name.gcc/tiny.o"
    gcc "${host[@]}" -DBUNDLE=$number -I"$work/$name" "$consumers/dispatch.c" "$work/$name.gcc"/*.o -o "$work/dispatch"
    "$work/dispatch" "$work/tiny.bin" || fail "dispatch of bundle $name"
    number=$((number + 1))
done

# AMX, which the system must permit: a made-up Linux takes the place of the instruction `syscall`, and of the C library's for lookupc.
bundle matrix gen/models/tiny.lua --isa scalar,avx2,avx512,amx_int8
compile matrix matrix.gcc gcc -std=c99 -O0 "${warnings[@]}"
for linux in made_up real; do
    faked=() syscall=syscall
    [[ $linux == real ]] || faked=('-Dvolatile(...)=FAKE_CALL') syscall=fake_syscall
    gcc -std=c99 -O0 -I"$consumers/fake_cpu" '-D__asm__(...)=FAKE_XGETBV' "${faked[@]}" -c "$work/matrix/tiny.c" -o "$work/matrix.gcc/tiny.o"
    gcc "${host[@]}" -I. -I"$consumers/fake_cpu" -I"$work/matrix" -Dsyscall=$syscall "$consumers/request_amx.c" harness/base/amx.c \
        "$work/matrix.gcc"/*.o -o "$work/request_amx"
    "$work/request_amx" "$work/tiny.bin" $linux || fail "AMX of bundle matrix, $linux Linux"
done
gcc -std=c99 -O0 -DTINY_NO_REQUEST_AMX -c "$work/matrix/tiny.c" -o "$work/matrix.gcc/tiny.o"
if nm "$work/matrix.gcc/tiny.o" | grep request_amx; then fail "TINY_NO_REQUEST_AMX leaves the request in"; fi
ok "AMX is taken where the system permits it, and a request says why not"

# The real CPU: the same choice as the flags its system shows.
best=0
if can avx512; then best=2; elif can avx2; then best=1; fi
printf '#include "tiny.h"\n#include <stdio.h>\n%s\n' 'int main(void) { static _Alignas(64) unsigned char blob[TINY_WEIGHTS_BYTES]; tiny_weights w;
return tiny_bind(blob, fread(blob, 1, sizeof blob, stdin), &w) ? 100 : w.isa; }' |
    clang -std=c11 -I"$work/tiny" -x c - -x none "$work/tiny.clang"/*.o -o "$work/chosen"
chosen=0
"$work/chosen" <"$work/tiny.bin" || chosen=$?
[[ $chosen == "$best" ]] || fail "this CPU: instruction set $chosen was chosen, expected $best"
ok "the best instruction set of CPU and operating system is chosen"
