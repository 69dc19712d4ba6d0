#!/bin/bash
# Models in other languages: a C++ program, a Python wheel and a Rust crate each build from scratch, print the numbers of
# lookupc run, and after a change rebuild what they must and nothing else. cffi takes the declarations of every header.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
lookupc=${LOOKUPC:-$PWD/build/lookupc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED languages: $*"
    exit 1
}

ok() { echo "ok     languages: $* ($SECONDS s from the start)"; }

full() { [[ ${LOOKUPC_EFFORT-} == full ]]; }

# quietly COMMAND...: shows what it prints only if it fails.
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "$*"; }; }

# ## Models: each with its file, options of emit and pack, and weights

names=(tiny integers tiny_skipless decoder encoder)
declare -A files=([tiny]=gen/models/tiny.lua [tiny_skipless]=gen/models/tiny_skipless.lua)
declare -A options=([integers]="--arithmetic integer")
isa=scalar
if full; then isa=scalar,avx2,avx512; fi
for name in "${names[@]}"; do
    files[$name]=${files[$name]:-tests/consumers/models/$name.lua}
    cp "${files[$name]}" "$work"
    files[$name]=$work/$name.lua
    quietly "$lookupc" sample "$work/$name.lua" --seed 5 -o "$work/$name.safetensors"
done

# emitted NAME FORM...: emits that model with these options.
emitted() {
    local types=() set=$isa
    read -ra types <<<"${options[$1]-}"
    [[ $1 != integers ]] || set=scalar
    quietly "$lookupc" emit "${files[$1]}" "${types[@]}" --isa "$set" "${@:2}"
}

# packed NAME FILE: its blob.
packed() {
    local types=()
    read -ra types <<<"${options[$1]-}"
    quietly "$lookupc" pack "${files[$1]}" "${types[@]}" --weights "$work/$1.safetensors" -o "$2"
}

# ## What the sizes and the declarations say

for name in "${names[@]}"; do
    emitted "$name" -o "$work/c/$name" --single-file
done
for folder in "$work"/c/*; do
    name=${folder##*/}
    quietly gcc -O0 -shared -fPIC "-D${name^^}_SHARED" "$folder"/*.c -o "$folder/library.so"
done
if /usr/bin/python3 -c 'import cffi' 2>"$work/log"; then
    quietly /usr/bin/python3 - "$work" <<'END'
import cffi, pathlib, re, sys
for folder in sorted(pathlib.Path(sys.argv[1], "c").iterdir()):
    name = folder.name
    header = (folder / f"{name}.h").read_text()
    block = re.search(r"/\* Declarations: .*?\*/(.*)/\* End of declarations\. \*/", header, re.S).group(1)
    ffi = cffi.FFI()
    ffi.cdef(block.replace(name.upper() + "_API ", ""))
    library = ffi.dlopen(str(folder / "library.so"))
    sizes = getattr(library, name + "_sizes")()
    macros = dict(re.findall(r"#define %s_(\w+) (\d+)u?\b" % name.upper(), header))
    assert ffi.string(sizes.model).decode() == name, name
    assert re.fullmatch(rb"[0-9a-f]{32}", ffi.string(sizes.digest)), name
    assert sizes.struct_bytes == ffi.sizeof(name + "_weights"), name
    checked = 0
    for field, _ in ffi.typeof(name + "_description").fields:
        if field.upper() in macros and isinstance(getattr(sizes, field), int):
            assert getattr(sizes, field) == int(macros[field.upper()]), (name, field)
            checked += 1
    assert checked >= 5, (name, checked)
    text = getattr(library, name + "_error")
    for word, code, doc in re.findall(r"#define %s_(ERROR_\w+) (\d+) /\* (.*) \*/" % name.upper(), header):
        assert ffi.string(text(int(code))).decode() in (doc, doc + ": run lookupc pack again"), (name, word)
    assert ffi.string(text(0)) == b"no error" and ffi.string(text(-1)) == ffi.string(text(99)) != b"", name
END
    ok "cffi takes the declarations of six kinds of models, and sizes and texts are those of the header"
else
    echo "skipped: languages: python3-cffi is missing"
fi

! "$lookupc" emit gen/models/tiny.lua --python "$work/p" --linked >"$work/log" 2>&1 || fail "--linked is taken beside --python"
grep -qx 'lookupc: --python: cannot be given beside --linked' "$work/log" || fail "--linked beside --python: $(cat "$work/log")"
sed 's/name = "tiny"/name = "lambda"/' gen/models/tiny.lua >"$work/lambda.lua"
! "$lookupc" emit "$work/lambda.lua" --python "$work/p" >"$work/log" 2>&1 || fail "a package called lambda"
[[ ! -e $work/p ]] || fail "a refused package leaves files"

# ## Programs

for name in "${names[@]}"; do
    emitted "$name" -o "$work/cpp/$name" --cpp --make
    emitted "$name" --python "$work/python/$name"
done
cp -r tests/consumers/cpp tests/consumers/python "$work"
quietly make -C "$work/cpp" CXX='g++ -fsyntax-only' main.o
quietly /usr/bin/python3 -m py_compile "$work"/python/main.py "$work"/python/*/*/__init__.py
[[ $("$lookupc" check "$work/python/decoder" --ignore '*.pyc') == "$work/python/decoder: fresh" ]] || fail "check of a Python package"
ok "C++ and Python read what emit writes"

# Pickled and copied objects give the same as before: a model by path, bytes and the package's own blob, sequences, an error.
mkdir "$work/pickled"
for name in tiny tiny_skipless decoder; do
    cp -r "$work/python/$name/$name" "$work/pickled"
    cp "$work/c/$name/library.so" "$work/pickled/$name/_$name.so"
    packed "$name" "$work/pickled/$name/$name.bin"
done
cat >"$work/pickled/main.py" <<'END'
import copy, os, pickle
import numpy as np
import decoder, tiny, tiny_skipless

again = lambda value: pickle.loads(pickle.dumps(value))
x = np.linspace(-1, 1, 3 * 64, dtype=np.float32).reshape(3, 64)
os.chdir("tiny")
own, by_path, by_bytes = tiny.Model(), tiny.Model("tiny.bin"), tiny.Model(open("tiny.bin", "rb").read())
own.ffn(x)
texts = [pickle.dumps(model) for model in (own, by_path, by_bytes)]
os.chdir("..")
size = tiny.sizes.weights_bytes
assert len(texts[0]) < 200 and len(texts[1]) < size / 10 and len(texts[2]) >= size, [len(text) for text in texts]
for model in *map(pickle.loads, texts), copy.copy(by_bytes), copy.deepcopy(own):
    assert (model.ffn(x) == own.ffn(x)).all()

blocks = tiny_skipless.Model().start()
blocks.prefill(x[:2])
ids = [72, 101, 108]
text = decoder.Model().start()
text.prefill(ids)
for sequence, step in (blocks, lambda s: s.decode(x[2])), (text, lambda s: s.step(108)):
    other, third = again(sequence), copy.deepcopy(sequence)
    assert other.position == third.position == sequence.position > 0
    expected = step(sequence)
    assert (step(other) == expected).all() and (step(third) == expected).all()

error = again(tiny.Error(3))
assert error.code == 3 and str(error) == str(tiny.Error(3))
END
(cd "$work/pickled" && quietly /usr/bin/python3 -B main.py)
ok "models, sequences and errors of Python packages can be pickled and copied"

# Which tools a crate takes for which machine, by stand-ins that note how they are called.
emitted tiny --rust "$work/crate"
if type -P rustc >"$work/log"; then
    quietly rustc --edition 2018 "$work/crate/build.rs" -o "$work/build_rs"
    mkdir "$work/tools" "$work/out"
    # shellcheck disable=SC2016
    printf '%s\n' '#!/bin/sh' 'words=${0##*/}' 'for word; do case $word in -c | crs) break ;; esac; words="$words $word"; done' \
        "echo \"\$words\" >>$work/called" >"$work/tools/cc"
    chmod +x "$work/tools/cc"
    prefixes=(aarch64-linux-gnu arm-linux-gnueabihf riscv64-linux-gnu x86_64-w64-mingw32)
    for tool in ar clang llvm-ar ccache other "${prefixes[@]/%/-gcc}" "${prefixes[@]/%/-ar}"; do
        ln -s cc "$work/tools/$tool"
    done
    # builds EXPECTED TARGET VARIABLE=VALUE...: with these tools, on a machine of x86-64 with Linux. The last flags are always the same.
    builds() {
        rm -f "$work/called"
        (cd "$work/crate" && quietly env -i PATH="$work/tools:/bin" OUT_DIR="$work/out" HOST=x86_64-unknown-linux-gnu TARGET="$2" "${@:3}" "$work/build_rs")
        [[ $(paste -sd\; "$work/called") == "${1/;/ -std=gnu99 -fno-lto;}" ]] || fail "build.rs for ${*:2}: $(cat "$work/called")"
    }
    arm=aarch64-unknown-linux-gnu
    builds 'cc -O2 -fPIC;ar' x86_64-unknown-linux-gnu TARGET_CC=other
    builds 'other -O2 -fPIC -g -O1;other' x86_64-unknown-linux-gnu HOST_CC=other CC=cc CFLAGS='-g -O1' AR=other
    builds 'aarch64-linux-gnu-gcc -O2 -fPIC;aarch64-linux-gnu-ar' $arm HOST_CC=other
    builds 'arm-linux-gnueabihf-gcc -O2 -fPIC;arm-linux-gnueabihf-ar' armv7-unknown-linux-gnueabihf
    builds 'riscv64-linux-gnu-gcc -O2 -fPIC;riscv64-linux-gnu-ar' riscv64gc-unknown-linux-gnu
    builds 'x86_64-w64-mingw32-gcc -O2;x86_64-w64-mingw32-ar' x86_64-pc-windows-gnu
    builds 'clang --target=x86_64-pc-windows-msvc -O2;llvm-ar' x86_64-pc-windows-msvc
    builds 'ccache other -O2 -fPIC -O3;aarch64-linux-gnu-ar' $arm CC_aarch64_unknown_linux_gnu='ccache other' CC=cc CFLAGS=-g TARGET_CFLAGS=-O3
    builds 'clang --target=aarch64-unknown-linux-gnu -O2 -fPIC;llvm-ar' $arm CC_$arm=clang AR_aarch64_unknown_linux_gnu=llvm-ar
    ok "build.rs follows TARGET, and the variables that the crate cc does"
else
    grep -q 'format!("{}_{}", name, target)' "$work/crate/build.rs" || fail "build.rs does not read CC_<target>"
    echo "skipped: languages: rustc is missing: build.rs does not run"
fi

# With AMX, which a program must request: granted, or an error that says why not.
for form in "-o $work/amx/cpp --cpp" "--python $work/amx/python" "--rust $work/amx/rust"; do
    read -ra words <<<"$form"
    quietly "$lookupc" emit gen/models/tiny.lua --isa scalar,amx_int8 "${words[@]}"
done
quietly gcc -O0 -shared -fPIC -DTINY_SHARED "$work/amx/python/src/tiny.c" -o "$work/amx/python/tiny/_tiny.so"
quietly env PYTHONPATH="$work/amx/python" /usr/bin/python3 -B - <<'END'
import tiny
try:
    tiny.request_amx()
except tiny.Error as error:
    assert 22 <= error.code <= 24 and "AMX" in str(error), error
END
printf '#include "tiny.hpp"\nint main() { try { lookupc::tiny::request_amx(); } catch (const lookupc::tiny::error &) {} }\n' >"$work/amx/main.cc"
quietly g++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -I"$work/amx/cpp" "$work/amx/main.cc"
if type -P rustc >"$work/log"; then
    printf '#[path = "rust/src/lib.rs"] mod tiny;\npub fn request() -> Result<(), tiny::Error> { tiny::request_amx() }\n' >"$work/amx/lib.rs"
    quietly rustc --edition 2018 --crate-type rlib --emit=metadata -o "$work/amx/lib.rmeta" "$work/amx/lib.rs"
fi
ok "C++, Python and Rust can request AMX"

full || exit 0

# What lookupc run gives, as a program shall print it.
expected() {
    local python=/usr/bin/python3
    "$python" - "$work" <<'END'
import sys, numpy as np
work = sys.argv[1]
x = np.zeros((1, 64), "<f4")
x[0, :2] = 1, -1
np.save(work + "/tiny.x.npy", x)
np.save(work + "/integers.x.npy", x * (1000 * 8 / 32768))
np.save(work + "/tiny_skipless.x.npy", ((np.arange(3 * 64) % 7 - 3) / 4).astype("<f4").reshape(3, 64))
END
    printf '72 101 108 108 111\n' >"$work/ids"
    for name in "${names[@]}"; do
        local types=() input=(--input "$work/$name.x.npy")
        read -ra types <<<"${options[$name]-}"
        [[ $name != *coder ]] || input=(--ids "$work/ids")
        quietly "$lookupc" run "${files[$name]}" "${types[@]}" --isa scalar --weights "$work/$name.safetensors" "${input[@]}" --output "$work/$name.y.npy"
    done
}

# printed FILE: a program has printed the expected numbers and texts.
printed() {
    /usr/bin/python3 - "$work" "$1" <<'END' || fail "$1: $(cut -c 1-200 "$1")"
import sys, numpy as np
work, path = sys.argv[1:]
lines = dict(line.rstrip("\n").split(" ", 1) if " " in line else (line.strip(), "") for line in open(path))
for name in "tiny", "integers", "tiny_skipless", "decoder", "encoder":
    y = np.array([float(word) for word in lines[name].split()])
    expected = np.load(f"{work}/{name}.y.npy").ravel()
    y = y * 2.0**-16 if name == "integers" else y
    assert y.shape == expected.shape and np.linalg.norm(y - expected) <= 1e-4 * np.linalg.norm(expected), name
assert lines["text"] == "Hello 4 5" and "shape" in lines and "256" in lines["id"] + "256", lines
assert lines["short"].startswith("not as many bytes") and "none.bin" in lines["none"], lines
assert lines["code"].startswith("6: a blob of another model") or lines["code"].startswith("3: not as many bytes"), lines["code"]
END
}

# rebuilds WHAT EXPECTED COMMAND...: the sources that a build tool says it compiles, by the lines that match $compiling.
rebuilds() {
    local got
    quietly "${@:3}"
    got=$(grep -oE "$compiling" "$work/log" | sed -E 's| *$||; s|.*[/ ]||' | sort -u | tr '\n' ' ') || true
    [[ $got == "$2" ]] || fail "${here##*/}: $1 compiles \"$got\" instead of \"$2\""
}

# change_score: another score in tiny.lua, and back.
change_score() { sed -i "s/\"$1\"/\"$2\"/" "$work/tiny.lua"; }


expected
ok "lookupc run has given what programs shall print"

# ### C++

here=$work/cpp compiling='[^ ]+\.cc?( |$)'
for name in "${names[@]}"; do
    packed "$name" "$here/$name.bin"
done
sources=$(cd "$here" && printf '%s ' main.cc ./*/*.c | xargs -n 1 basename | sort | tr '\n' ' ')
rebuilds "everything" "$sources" make -C "$here"
(cd "$here" && ./consumer) >"$work/cpp.txt" || fail "the C++ program"
printed "$work/cpp.txt"
rebuilds "nothing" "" make -C "$here"
touch "$here/main.cc"
rebuilds "main.cc" "main.cc " make -C "$here"
emitted tiny -o "$here/tiny" --cpp --make
rebuilds "the same model" "" make -C "$here"
change_score gelu softmax
emitted tiny -o "$here/tiny" --cpp --make
rebuilds "another score, whose header has another name for the linker" "main.cc tiny.c tiny__avx2.c tiny__avx512.c tiny__scalar.c " make -C "$here"
change_score softmax gelu
ok "C++: a program with five models prints the numbers of lookupc run; make compiles what it must"

# ### Python

here=$work/python
if /usr/bin/python3 -c 'import build.__main__, wheel, setuptools' 2>"$work/log"; then
    # wheel NAME: builds that package and puts it where main.py finds it.
    wheel() {
        rm -rf "$here/$1/dist"
        /usr/bin/python3 -m build --wheel --no-isolation "$here/$1" || return 1
        rm -rf "$here/site/$1"
        /usr/bin/python3 -m zipfile -e "$here/$1/dist/"*.whl "$here/site"
    }
    # runs: main.py prints what it shall.
    runs() {
        (cd "$work" && PYTHONPATH=$here/site /usr/bin/python3 -B "$here/main.py") >"$work/python.txt" || fail "the Python program"
        printed "$work/python.txt"
    }
    compiling=' -c [^ ]*\.c'
    for name in "${names[@]}"; do
        packed "$name" "$here/$name/$name/$name.bin"
        rebuilds "everything" "$name.c " wheel "$name"
    done
    [[ $(echo "$here"/tiny/dist/*) == */tiny-*-cp38-abi3-*.whl ]] || fail "the name of a wheel: $(echo "$here"/tiny/dist/*)"
    runs
    rebuilds "nothing" "" wheel tiny
    for folder in "$work/wheel" "$work/another folder/wheel"; do
        mkdir -p "$folder"
        emitted tiny --python "$folder"
        quietly env SOURCE_DATE_EPOCH=1700000000 /usr/bin/python3 -m build --wheel --no-isolation "$folder"
    done
    cmp "$work"/wheel/dist/*.whl "$work/another folder"/wheel/dist/*.whl || fail "a wheel depends on the folder that it is built in"
    emitted tiny --python "$here/tiny"
    rebuilds "the same model" "" wheel tiny
    packed encoder "$here/encoder/encoder/encoder.bin"
    rebuilds "weights" "" wheel encoder
    runs
    change_score gelu softmax
    emitted tiny --python "$here/tiny"
    rebuilds "another score" "tiny.c " wheel tiny
    change_score softmax gelu
    ok "Python: wheels of five models likewise, also with threads that share a model"
else
    echo "skipped: languages: python3-build, python3-setuptools or python3-wheel is missing"
fi

# ### Rust

here=$work/rust
if [[ -x /usr/bin/cargo && -x /usr/bin/rustc ]]; then
    # Debian's, with nothing from a registry, and flags as some distributions set them for all packages.
    cargo() { (cd "$here" && CFLAGS='-flto -std=c90' CARGO_HOME=$work/cargo RUSTC=/usr/bin/rustc /usr/bin/cargo --offline "$@"); }
    cp -r tests/consumers/rust "$here"
    for name in "${names[@]}"; do
        emitted "$name" --rust "$here/$name"
        packed "$name" "$here/$name.bin"
    done
    compiling='Compiling [a-z_]*'
    rebuilds "everything" "consumer decoder encoder integers tiny tiny_skipless " cargo build
    ! grep -q warning "$work/log" || fail "rustc warns: $(cat "$work/log")"
    (cd "$here" && target/debug/consumer) >"$work/rust.txt" || fail "the Rust program"
    printed "$work/rust.txt"
    rebuilds "nothing" "" cargo build
    touch "$here/src/main.rs"
    rebuilds "main.rs" "consumer " cargo build
    emitted tiny --rust "$here/tiny"
    rebuilds "the same model" "" cargo build
    change_score gelu softmax
    emitted tiny --rust "$here/tiny"
    rebuilds "another score" "consumer tiny " cargo build
    [[ $("$lookupc" check "$here/tiny") == "$here/tiny: fresh" ]] || fail "check of a crate"
    ok "Rust: a program with five crates likewise"
else
    echo "skipped: languages: rustc or cargo is missing"
fi
