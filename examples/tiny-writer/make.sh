#!/bin/bash
# Makes tiny_writer: from weights to firmware that writes in an emulator and to a web page; with -t also the weights, from text.
#
#   examples/tiny-writer/make.sh [-t TOKENS] [-p PROMPT] [-s SEED] [-w] [-m TARGETS] FOLDER
#
#   -t TOKENS   trains on so many tokens, such as 6e6, and the dense twin, too, instead of taking the weights that lie here
#   -p PROMPT   what is written on; -s SEED: of what is drawn
#   -m TARGETS  of cortex-m33 and cortex-m7, default both
#   -w          without the web page
#
# What FOLDER holds already is not made again, and a training that was stopped goes on: run the same command once more. Without -t a FOLDER
# that was trained in keeps its weights. lookupc is the one that LOOKUPC names, that of ./build.sh build, or the one in PATH.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
lookupc=${LOOKUPC:-$(command -v "$root/build/lookupc" || command -v lookupc)} || { echo "$0: lookupc is missing" >&2; exit 1; }
lookupc=$(realpath -- "$(command -v "$lookupc")")
tokens='' prompt='hacker:' seed=1 targets='cortex-m33 cortex-m7' page=1
while getopts 't:p:s:m:w' option; do
    case $option in
    t) tokens=$OPTARG ;;
    p) prompt=$OPTARG ;;
    s) seed=$OPTARG ;;
    m) targets=$OPTARG ;;
    w) page='' ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || { echo "$0: FOLDER is missing" >&2; exit 2; }
for program in arm-none-eabi-gcc qemu-system-arm; do
    command -v "$program" >/dev/null || { echo "$0: $program is missing (Debian: gcc-arm-none-eabi, qemu-system-arm)" >&2; exit 1; }
done
mkdir -p "$1"
cd "$1"

# Of each target: its board in QEMU, instructions that QEMU executes in a clock of that board, flags of compiler and linker.
board_of() {
    case $1 in
    cortex-m33) board=mps2-an505 per_clock=50 start=0x10000000 ram=0x38000000 cpu=(-mcpu=cortex-m33) ;;
    cortex-m7) board=mps2-an500 per_clock=40 start=0x00000000 ram=0x20000000 cpu=(-mcpu=cortex-m7 -mfpu=fpv5-sp-d16) ;;
    *) echo "$0: $1: must be cortex-m33 or cortex-m7" >&2; exit 2 ;;
    esac
}

# made FILE FROM COMMAND...: runs the command that makes FILE from FROM, unless FILE is there and newer.
made() {
    local file=$1 from=$2
    shift 2
    [ "$file" -nt "$from" ] || { echo "== $file" >&2; "$@"; }
}

# copied FILE: from here, unless it is the same.
copied() { cmp -s "$here/$1" "$1" || cp "$here/$1" .; }

# ---- from text to weights ----

read_text() {
    mkdir -p packages
    (cd packages && apt-get download dict-jargon dict-devil && for package in *.deb; do dpkg-deb -x "$package" .; done)
    for name in jargon devil; do
        gzip -dc <"packages/usr/share/dictd/$name.dict.dz" >"packages/$name.dict"
    done
    lua5.4 "$here/text.lua" packages/train.txt valid.txt packages/jargon.dict packages/devil.dict
    mv packages/train.txt train.txt
}

train() {
    local resume=()
    [ ! -e "$1.f32.safetensors.resume" ] || resume=(--resume)
    "$lookupc" train "$1.lua" --text train.txt --valid valid.txt --tokens "$tokens" --batch 8 --seed 1 \
        -o "$1.f32.safetensors" --html "$1.html" "${resume[@]}"
}

copied tiny_writer.lua
copied dense_twin.lua
models=tiny_writer
if [ -n "$tokens" ]; then
    models='tiny_writer dense_twin'
    [ -e train.txt ] || read_text
    made pieces.model train.txt "$lookupc" tokenizer --text train.txt --pieces 512 -o pieces.model
    for model in $models; do
        made "$model.f32.safetensors" pieces.model train "$model"
        made "$model.safetensors" "$model.f32.safetensors" "$lookupc" quantise "$model.f32.safetensors" -o "$model.safetensors"
    done
elif [ ! -e tiny_writer.f32.safetensors ]; then
    copied pieces.model
    copied tiny_writer.safetensors
fi

# ---- from weights to programs ----

types=(--type i8 --cache i8)

# bundle MODEL TARGET: its firmware.
bundle() {
    "$lookupc" emit "$1.lua" --profile firmware --target "$2" --weights "$1.safetensors" "${types[@]}" --without-misra \
        -o "$1-$2" >"$1-$2.log"
    touch "$1-$2/MANIFEST.json" # also where nothing has changed
}

# program MODEL TARGET: the firmware and writer.c, for the target's board in QEMU.
program() {
    local folder=$1-$2
    board_of "$2"
    arm-none-eabi-gcc "${cpu[@]}" -mfloat-abi=hard -mthumb -std=c11 -O2 -ffreestanding -nostartfiles -nostdlib \
        -DSEED="$seed" -I"$root" -I"$folder/inc" -I"$folder/src" \
        "$here/writer.c" "$root/tests/firmware/boards/start_cortex_m.c" "$folder"/src/*.c "$folder"/src/*.S \
        -T "$root/tests/firmware/boards/cortex_m.ld" -Wl,--defsym=board_flash=$start,--defsym=board_ram=$ram,--defsym=board_flash_bytes=4M \
        -lgcc -o "$folder.elf"
}

# A clock of the emulated board takes the same number of instructions, whatever they are.
run() {
    board_of "$2"
    printf '%s\n' "$prompt" | qemu-system-arm -machine $board -semihosting-config enable=on,target=native -nographic \
        -monitor none -serial none -icount shift=0 -kernel "$1-$2.elf" >"$1-$2.txt" 2>&1 # semihosting writes to standard error
}

number() { sed -n "s/^#define TINY_WRITER_$2 \([0-9]*\)u.*/\1/p" "$1/inc/tiny_writer.h"; }

rows=()
for model in $models; do
    for target in $targets; do
        made "$model-$target/MANIFEST.json" "$model.safetensors" bundle "$model" "$target"
        program "$model" "$target"
        run "$model" "$target"
        board_of "$target"
        clocks=$(sed -n 's/.* tokens, \([0-9]*\) clocks each$/\1/p' "$model-$target.txt")
        folder=$model-$target
        rows+=("$(printf '%-12s %-11s %9d %9d %7d %13d' "$model" "$target" "$(number "$folder" FLASH_BYTES)" \
            "$(number "$folder" RAM_BYTES)" "$(number "$folder" STACK_BYTES)" $((clocks * per_clock)))")
    done
done
web() {
    "$lookupc" emit tiny_writer.lua --web page --weights tiny_writer.safetensors "${types[@]}" >page.log
    touch page/MANIFEST.json
}
[ -z "$page" ] || made page/MANIFEST.json tiny_writer.safetensors web

# ---- figures ----

sed '$d' "tiny_writer-${targets%% *}.txt"
echo
printf '%-12s %-11s %9s %9s %7s %13s\n' model target flash RAM stack 'instr/token'
printf '%s\n' "${rows[@]}"
if [ -n "$tokens" ]; then
    bits() { "$lookupc" perplexity "$1.lua" --weights "$2" --text valid.txt "${@:3}" --json | sed 's/.*"bits_per_byte":\([0-9.]*\).*/\1/'; }
    printf '\n%-12s %13s %13s   bits per character of valid.txt\n' model float32 'in 8 bits'
    for model in $models; do
        printf '%-12s %13.3f %13.3f\n' "$model" "$(bits "$model" "$model.f32.safetensors")" \
            "$(bits "$model" "$model.safetensors" "${types[@]}")"
    done
fi
