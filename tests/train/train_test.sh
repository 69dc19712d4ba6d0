#!/bin/bash
# lookupc train: a run that is killed at any moment and resumed ends with the bytes of the undisturbed one;
# damaged files, wrong text and full disks end in one line, and nothing is lost.
set -euo pipefail
kills=$((2 + 8 * $(lua5.4 tests/effort.lua training)))
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp README.md "$folder/text.txt"
cd "$folder"

fail() {
    echo "FAILED $*" >&2
    exit 1
}

# says STATUS WORDS COMMAND...: it ends with that status and one line on standard error that holds these words.
says() {
    local status=0 wanted=$1 words=$2
    shift 2
    "$@" >printed 2>errors || status=$?
    [[ $status == "$wanted" && $(wc -l <errors) == 1 && $(<errors) == *"$words"* ]] || fail "$*: status $status: $(<errors)"
}

cat >model.lua <<'END'
return {
    name = "tiny_lm", d = 16, heads = 2, layers = 1, vocab = 256, positions = 16, skip = true,
    norm = { kind = "layernorm" }, attention = { kind = "lsh", tables = 4, tau = 2, window = 4, context = 16 },
    ffn = { kind = "lookup", h = 4, tau = 4, projection = { kind = "bh4", block = 4 }, score = "gelu", neighbours = 2 },
    embedding = {}, output = { norm = { kind = "layernorm" }, head = {} },
    tokenizer = { kind = "bytes" }, checkpoint = "mingpt",
}
END

# The run that all are.
train=("$LOOKUPC" train model.lua --text text.txt --steps 100 --batch 3 --rate 5e-3 --dropout 0.1 --isa scalar)
quantised=(--quantise i8 --table-optimiser adam) # has more to keep

"${train[@]}" -o whole.safetensors --threads 2 --html whole.html >log
[[ $(wc -l <log) == 21 && $(tail -1 log) == 'wrote whole.safetensors: 4,800 tokens, loss '* ]] || fail "$(<log)"
[[ ! -e whole.safetensors.resume ]] || fail "the checkpoint of a finished run is there"
grep -q '<title>Training of tiny_lm</title>' whole.html || fail "no page"
learnt=$(awk '{ sub(",", "", $8); print $8 }' log | sed -n '1p;20p' | tr '\n' ' ')
awk -v l="$learnt" 'BEGIN { split(l, loss); exit !(loss[2] < loss[1] - 0.5) }' || fail "nothing is learnt: $learnt"

begun=$(date +%s%N)
"${train[@]}" -o again.safetensors --threads 2 >again # what is compiled is kept: this is as long as a run that is to be killed
took=$(($(date +%s%N) - begun)) # nanoseconds
cmp whole.safetensors again.safetensors || fail "the same run makes other weights"

# kill_and_resume NAME: kill -9 at random moments of runs, $kills times and until one was resumed. Each ends with the bytes of whole.safetensors.
killed=0 resumed=0
kill_and_resume() {
    local more=() last=$((killed + kills)) before=$resumed status delay
    while ((killed < last || resumed == before)); do
        if [[ -e $1.safetensors ]]; then
            is_whole "$1"
            rm "$1.safetensors" "$1.jsonl"
        fi
        more=()
        [[ ! -e $1.safetensors.resume ]] || more=(--resume)
        resumed=$((resumed + ${#more[@]}))
        "${train[@]}" -o "$1.safetensors" --threads 2 --save-every 0.001s "${more[@]}" >log 2>&1 &
        delay=$((RANDOM * took / 32768))
        sleep "$(printf '%d.%09d' $((delay / 1000000000)) $((delay % 1000000000)))"
        kill -9 $! 2>/dev/null || true # it may have ended
        status=0
        wait $! 2>/dev/null || status=$?
        [[ $status == 0 || $status == 137 ]] || fail "$(<log)"
        killed=$((killed + (status == 137)))
    done
    more=()
    [[ ! -e $1.safetensors.resume ]] || more=(--resume)
    [[ -e $1.safetensors ]] || "${train[@]}" -o "$1.safetensors" --threads 2 "${more[@]}" >log
    is_whole "$1"
}
steps() { sed -nE 's/.*("loss":[^,]*).*("step":[0-9]*).*/\2 \1/p' "$1"; }
is_whole() {
    cmp whole.safetensors "$1.safetensors" || fail "a killed run makes other weights"
    cmp <(steps whole.jsonl) <(steps "$1.jsonl") || fail "the log of a killed run is another one"
}
kill_and_resume killed
if ((kills > 2)); then
    train+=("${quantised[@]}")
    "${train[@]}" -o whole.safetensors --threads 2 >log
    kill_and_resume quantised
fi
((killed >= kills)) || fail "killed $killed times only"

# Attention by tables: killed among the steps of expected weights, and behind the last with signs of its own. A full pipe holds the run where
# it tells of a validation, once that is saved.
mkfifo pipe
exec 5<>pipe
dd if=/dev/zero of=pipe bs=512 oflag=nonblock 2>errors || true # until it is full, however much that is
for more in "" --resume; do
    touch begun
    "${train[@]}" --evaluate 45 --save-every 1h -o held.safetensors --threads 2 ${more:+"$more"} >pipe 2>errors &
    until [[ held.safetensors.resume -nt begun ]]; do
        kill -0 $! 2>/dev/null || fail "a run that is to be killed ends: $(<errors)"
        sleep 0.02
    done
    kill -9 $!
    wait $! 2>/dev/null || true
done
exec 5>&-
"${train[@]}" --evaluate 45 -o held.safetensors --threads 2 --resume >log
cmp whole.safetensors held.safetensors || fail "a run killed at steps 45 and 90 makes other weights"
cmp <(steps whole.jsonl) <(steps held.jsonl) || fail "the log of a run killed at steps 45 and 90 is another one"

# With products in bf16 it ends with the same bytes on other numbers of threads, too.
sed 's/attention = .*/attention = { context = 16 }, ffn = { kind = "mlp", f = 40, activation = "gelu" },/; /kind = "lookup"/d' model.lua >dense.lua
dense=("$LOOKUPC" train dense.lua --text text.txt --steps 150 --batch 3 --isa scalar)
"${dense[@]}" --type bf16 -o one.safetensors --threads 1 >log
"${dense[@]}" --type bf16 -o more.safetensors --threads 2 --save-every 0.001s >log 2>&1 &
until [[ -s more.safetensors.resume ]]; do sleep 0.01; done
kill -9 $!
wait $! 2>/dev/null || true
says 1 'type: is f32: must be bf16, as in the run' "${dense[@]}" --type f32 -o more.safetensors --resume
"${dense[@]}" --type bf16 -o more.safetensors --threads 3 --resume >log
cmp one.safetensors more.safetensors || fail "products in bf16 make other weights once they are resumed"

# A full standard output ends the run once the step that it would be told of is saved.
unsaid=("${train[@]}" -o unsaid.safetensors --threads 2)
status=0
"${unsaid[@]}" 2>errors >/dev/full || status=$?
[[ $status == 1 && $(<errors) == 'lookupc: standard output: No space left on device' ]] || fail "a full standard output: $status: $(<errors)"
"${unsaid[@]}" --resume >log
is_whole unsaid
[[ $(wc -l <log) == 20 ]] || fail "not resumed behind the first of 20 validations: $(<log)"

# An interrupt saves first. A background job of a script ignores SIGINT, so this is SIGTERM.
"$LOOKUPC" train model.lua --text text.txt --steps 10000 --batch 2 --threads 2 --isa scalar "${quantised[@]}" \
    -o stopped.safetensors >log 2>errors &
until [[ -s stopped.jsonl ]] && grep -q loss stopped.jsonl; do sleep 0.02; done
kill -TERM $!
status=0
wait $! || status=$?
[[ $status == 143 && $(<errors) =~ ^'lookupc: interrupted at step '[0-9]+' of 10000; --resume goes on'$ ]] || fail "$status: $(<errors)"
[[ -e stopped.safetensors.resume && ! -e stopped.safetensors ]] || fail "nothing was saved"

# With another instruction set and number of threads it goes on, and says so.
if [[ ${LOOKUPC_CPU:-avx2} == avx* ]] && grep -qw avx2 /proc/cpuinfo; then
    cp stopped.safetensors.resume changed.safetensors.resume
    "$LOOKUPC" train model.lua --text text.txt --steps 10000 --batch 2 --isa avx2 --threads 1 "${quantised[@]}" \
        -o changed.safetensors --resume >log 2>errors &
    while [[ ! -s changed.jsonl ]] && kill -0 $!; do sleep 0.02; done
    kill -9 $! || fail "does not go on: $(<errors)"
    wait $! 2>/dev/null || true
    [[ $(<errors) == 'lookupc: --resume: on 1 thread of all ranks instead of 2 the last bits of sums differ
lookupc: --resume: on avx2 instead of scalar the last bits of sums differ' ]] || fail "$(<errors)"
else
    echo "skipped: a resume with avx2, which this CPU lacks"
fi

# What cannot be resumed, or started.
says 1 'projection_type: is f32: must be i8, as in the run' \
    "$LOOKUPC" train model.lua --text text.txt --batch 2 --isa scalar -o stopped.safetensors --steps 10000 --table-optimiser adam --resume
again=("$LOOKUPC" train model.lua --text text.txt --batch 2 --isa scalar "${quantised[@]}" -o stopped.safetensors)
says 1 'stopped.safetensors.resume: is of an unfinished run' "${again[@]}" --steps 10000
says 1 'stopped.safetensors.resume: steps: is 7: must be 10000, as in the run' "${again[@]}" --steps 7 --resume
says 1 'rate: is 0.5: must be 0.002, as in the run' "${again[@]}" --steps 10000 --rate 0.5 --resume
cp text.txt kept.txt
echo more >>text.txt
says 1 'text: is ' "${again[@]}" --steps 10000 --resume
mv kept.txt text.txt
head -c 1500 text.txt >first.txt
tail -c +1501 text.txt >rest.txt
says 1 'text: is ' "${again[@]/text.txt/first.txt}" --valid rest.txt --steps 10000 --resume # the same text in other parts
size=$(stat -c %s stopped.safetensors.resume)
for cut in 5 $((size / 2)) $((size - 1)); do
    head -c "$cut" stopped.safetensors.resume >cut.safetensors.resume
    says 1 'cut.safetensors.resume: ' "$LOOKUPC" train model.lua --text text.txt --batch 2 --isa scalar -o cut.safetensors --steps 10000 --resume
    [[ $(stat -c %s cut.safetensors.resume) == "$cut" ]] || fail "the damaged checkpoint was changed"
done
python3 - "$size" <<'END'
import sys
damaged = bytearray(open("stopped.safetensors.resume", "rb").read())
open("old.safetensors.resume", "wb").write(damaged.replace(b'"sha256":', b'"digest":'))
damaged[int(sys.argv[1]) // 2] ^= 8
open("cut.safetensors.resume", "wb").write(damaged)
END
says 1 'cut.safetensors.resume: is damaged: its values are not those of its digest' \
    "$LOOKUPC" train model.lua --text text.txt --batch 2 --isa scalar -o cut.safetensors --steps 10000 --resume
says 1 'old.safetensors.resume: is of a run of an earlier lookupc: go on with that one, or remove the file' \
    "${again[@]/stopped/old}" --steps 10000 --resume
says 1 'none.safetensors.resume: is missing' "$LOOKUPC" train model.lua --text text.txt -o none.safetensors --steps 5 --resume
printf 'good\nbad \xff\n' >latin.txt
: >empty.txt
says 1 '--text: latin.txt: byte 10, in line 2: is not UTF-8' "$LOOKUPC" train model.lua --text latin.txt -o none.safetensors --steps 5
says 1 '--text: empty.txt: is empty' "$LOOKUPC" train model.lua --text text.txt empty.txt -o none.safetensors --steps 5
says 1 '--valid: latin.txt' "$LOOKUPC" train model.lua --text text.txt --valid latin.txt -o none.safetensors --steps 5
sed 's/tokenizer = [^}]*},//' model.lua >plain.lua
echo text >text.model
wants_tokenizer=("$LOOKUPC" train plain.lua --text text.txt -o none.safetensors --steps 5 --tokenizer)
says 1 '--tokenizer: absent.model: No such file' "${wants_tokenizer[@]}" absent.model
says 2 '--tokenizer: text.txt: must end in .json or .model; a vocab.txt' "${wants_tokenizer[@]}" text.txt
says 1 "--tokenizer: $PWD/text.model: model: is no message of a SentencePiece model" "${wants_tokenizer[@]}" text.model
says 1 "--tokenizer: $PWD/model.lua: must end in .json, .txt, .model or .gguf" "${wants_tokenizer[@]}" model.lua
echo few >few.txt
says 1 'tokens to train on: must be more than --context = 16' "$LOOKUPC" train model.lua --text few.txt -o none.safetensors --steps 5
says 1 '--valid: few.txt: has 4 tokens to validate on: a window has --context = 16 and one more' \
    "$LOOKUPC" train model.lua --text text.txt --valid few.txt -o none.safetensors --steps 5
head -c 100 text.txt >short.txt
says 0 'there are no validations: --text leaves ' "$LOOKUPC" train model.lua --text short.txt --isa scalar -o short.safetensors --steps 5
wild=("$LOOKUPC" train model.lua --text text.txt --isa scalar --threads 1 -o wild.safetensors --steps 20 --table-rate 1e-9)
"${wild[@]}" --rate 0.5 >printed 2>errors
[[ $(grep -c 'is above ln(vocab) = 5.55, which equal logits have; a smaller --rate helps$' errors) == 1 ]] || fail "wild: $(<errors)"
cp wild.safetensors kept
says 1 'step 2: the run diverges: the loss, ' "${wild[@]}" --rate 50 --evaluate 20 --projection-rate 1e-9
cmp kept wild.safetensors || fail "a run that diverges replaces older weights"
says 1 'is the input text.txt' "$LOOKUPC" train model.lua --text text.txt -o text.txt --steps 5
for outputs in '-o none.safetensors --log ./none.safetensors' '-o none --html none' '-o none --log none.resume' '-o none --html none.jsonl'; do
    # shellcheck disable=SC2086
    says 1 ': choose another file' "$LOOKUPC" train model.lua --text text.txt --steps 5 $outputs
    [[ $(<errors) == *': is the output none'* ]] || fail "$(<errors)"
done
compgen -G 'none*' && fail "outputs that are one file were written"
printf 'Dear all,\n' >letter.txt
says 1 'letter.txt: exists and is no log of a training' "${again[@]}" --steps 10000 --resume --log letter.txt
says 1 'letter.txt: exists and is no log of a training' "$LOOKUPC" train model.lua --text text.txt -o none.safetensors --steps 5 --log letter.txt
[[ $(<letter.txt) == 'Dear all,' ]] || fail "a file that is no log was overwritten"
cmp text.txt "$OLDPWD/README.md"
[[ ! -e none.safetensors && ! -e none.safetensors.resume ]] || fail "something was written"

# A disk that fills up: the last checkpoint stays, and goes on to the bytes of an undisturbed run.
until [[ -e full.safetensors.resume ]]; do
    "${train[@]}" -o full.safetensors --threads 2 >log 2>errors &
    while [[ ! -e full.safetensors.resume ]] && kill -0 $! 2>/dev/null; do sleep 0.01; done
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    rm -f full.safetensors
done
cp full.safetensors.resume kept
says 1 'full.safetensors.resume: File too large' bash -c 'trap "" XFSZ; ulimit -f 100; exec "$@"' _ \
    "${train[@]}" -o full.safetensors --threads 2 --resume
[[ ! -e full.safetensors ]] || fail "half-written weights"
cmp kept full.safetensors.resume || fail "a full disk changes the last good checkpoint"
"${train[@]}" -o full.safetensors --threads 2 --resume >log 2>errors || fail "$(<errors)"
is_whole full

echo "$killed times killed, $resumed times resumed: the same bytes"
