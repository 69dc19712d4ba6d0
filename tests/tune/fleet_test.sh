#!/bin/bash
# Shards of a tuning through a real Slurm of two nodes on this machine, and through GNU parallel: a killed one goes on where its log ends, and
# the choices are those of one log, in whatever order the logs are merged.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export LOOKUPC=${LOOKUPC:-$PWD/build/lookupc}
work=$(mktemp -d)
daemons=()

cleanup() {
    [[ ! -e $work/slurm.conf ]] || scancel --me --signal=KILL --full >/dev/null 2>&1 || true
    local i
    for ((i = ${#daemons[@]} - 1; i >= 0; --i)); do kill "${daemons[i]}" 2>/dev/null || true; done
    wait
    rm -rf "$work"
}
trap cleanup EXIT

fail() {
    echo "FAILED fleet: $*"
    exit 1
}

skip() {
    echo "skipped: fleet: $*"
    exit 77
}

ok() { echo "ok     fleet: $*"; }

# until_true SECONDS COMMAND...: waits until the command succeeds.
until_true() {
    local end=$((SECONDS + $1))
    until "${@:2}" >/dev/null 2>&1; do
        ((SECONDS < end)) || return 1
        sleep 0.2
    done
}

# refuses MESSAGE COMMAND...: the command fails with this one line.
refuses() {
    local message
    message=$("${@:2}" 2>&1) && fail "$2 does not refuse, \"$1\", but says \"$message\""
    [[ $message == "$1" ]] || fail "$2 says \"$message\", not \"$1\""
}

# ## A Slurm of two nodes

for program in munged slurmctld slurmd sbatch; do
    [[ -n $(PATH=$PATH:/usr/sbin command -v $program) ]] || skip "$program is not there (Debian: slurm-wlm, munge)"
done
PATH=$PATH:/usr/sbin
user=$(id -un)
port=$((20000 + $$ % 20000))
chmod 755 "$work"
mkdir "$work"/{state,n1,n2,cache,tree}
head -c 1024 /dev/urandom >"$work/munge.key"
chmod 400 "$work/munge.key"
cat >"$work/slurm.conf" <<END
ClusterName=lookupc
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=2
MailProg=/bin/true
SchedulerParameters=batch_sched_delay=0,sched_interval=2
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=1 Feature=here State=UNKNOWN
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=1 Feature=here State=UNKNOWN
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$work/slurm.conf

# start COMMAND...: a daemon, ended by cleanup.
start() {
    "$@" >>"$work/daemons.log" 2>&1 &
    daemons+=($!)
}

munge_works() { munge --no-input --socket="$work/munge.socket" | unmunge --socket="$work/munge.socket"; }
nodes_idle() { [[ $(sinfo --noheader --Node --states=idle --format=%N | xargs) == "n1 n2" ]]; }

start munged --foreground --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munged.pid" \
    --log-file="$work/munged.log" --seed-file="$work/munge.seed"
until_true 20 munge_works || skip "munged does not start here: $(tail -n 1 "$work/daemons.log")"
start slurmctld -D
start slurmd -D -N n1
start slurmd -D -N n2
until_true 40 nodes_idle || skip "Slurm does not start here: $(grep -m 1 fatal "$work/daemons.log" || tail -n 1 "$work/daemons.log")"

# ## Shards through Slurm

mkdir -p "$XDG_CACHE_HOME/lookupc/headers" "$work/cache/lookupc"
ln -s "$XDG_CACHE_HOME/lookupc/headers" "$work/cache/lookupc/" # precompiled, of other tests
export LOOKUPC_STORE=$work/store.sqlite XDG_CACHE_HOME=$work/cache
# Times that tests/support/measured.lua makes up; shard 2 waits in the midst of its first run.
cp -r commands gen harness templates LICENSE "$work/tree"
cp tests/support/measured.lua "$work/tree/harness/measure/measure.lua"
cat >"$work/lookupc" <<END
#!/bin/bash
if [[ "\$*" == *'--shard 2/3'* && ! -e '$work/waited' ]]; then
    touch '$work/waited'
    export LOOKUPC_TEST_RECORDS=7 LOOKUPC_TEST_WAITS=1
fi
exec '$LOOKUPC' --tree '$work/tree' "\$@"
END
chmod +x "$work/lookupc"
LOOKUPC=$work/lookupc
model=gen/models/tiny.lua run="$work/a run"
options=(--batch 64 --choices gather.accumulators --isa scalar --cflags -O0)
log() { echo "$run/shard-$1-of-3.jsonl"; }
submit() { harness/fleet/slurm.sh submit $model "$run" --shards 3 --time 60s --constraint here -- "${options[@]}"; }
measured() { [[ -e $(log 2) ]] && (($(grep -c '"status":"ok"' "$(log 2)") == 6)); }
queue_empty() { [[ -z $(squeue --noheader) ]]; }

refuses 'slurm.sh: --shards: 1: must be an integer from 2 to 10000' harness/fleet/slurm.sh submit $model "$run" --shards 1
refuses 'slurm.sh: none.lua: there is no such model file' harness/fleet/slurm.sh submit none.lua "$run"
refuses "slurm.sh: $run: is no folder of a run" harness/fleet/slurm.sh status "$run"
refuses 'slurm.sh: --color: is no option' harness/fleet/slurm.sh submit $model "$run" --color red
refuses 'slurm.sh: --constraint: avx9: no node has this feature' harness/fleet/slurm.sh submit $model "$run" --constraint avx9
refuses 'slurm.sh: sbatch: error: invalid partition specified: none sbatch: error: Batch job submission failed: Invalid partition name specified' \
    harness/fleet/slurm.sh submit $model "$work/none" --partition none

[[ $(submit) == "submitted shards 1,2,3 as job "* ]] || fail "nothing was submitted"
[[ $(submit) == "nothing to submit: every shard is done or queued" ]] || fail "shards in the queue are submitted again"
scontrol show job >"$work/jobs"
[[ $(grep -c 'OverSubscribe=NO' "$work/jobs") == $(grep -c 'JobId=' "$work/jobs") && $(grep -c 'Features=here' "$work/jobs") == $(grep -c 'JobId=' "$work/jobs") ]] ||
    fail "jobs do not ask for the feature and a machine of their own: $(cat "$work/jobs")"
until_true 300 measured || fail "shard 2 measures nothing: $(cat "$run"/*.out)"
job=$(tail -n 1 "$run/jobs")
scancel --signal=KILL --full "${job}_2"
cp "$(log 2)" "$work/partial.jsonl"
until_true 300 queue_empty || fail "jobs do not end: $(squeue)"
[[ ! -e $run/shard-2-of-3.done && -e $run/shard-1-of-3.done && -e $run/shard-3-of-3.done ]] || fail "not shard 2 alone was killed: $(ls "$run")"
status=0
harness/fleet/slurm.sh status "$run" >"$work/status" || status=$?
{ ((status == 4)) && grep -q '^shard   2  unfinished' "$work/status" && grep -q '^2 of 3 shards done, 0 queued or running' "$work/status"; } ||
    fail "a killed shard is not told: $status $(cat "$work/status")"
ok "three shards on two nodes, one of them killed: $(wc -l <"$(log 2)") records are left"

head -n "$(wc -l <"$work/partial.jsonl")" "$(log 2)" >"$work/left.jsonl" # a line that was being written is complete by now, or never
cp "$(log 1)" "$work/before.jsonl"
refuses "slurm.sh: $run: was begun with another model, program or options: give these again, or another folder" \
    harness/fleet/slurm.sh submit $model "$run" --shards 3 --time 61s
[[ $(submit) == "submitted shards 2 as job "* ]] || fail "not what is unfinished was submitted again"
until_true 300 queue_empty || fail "jobs do not end: $(squeue)"
harness/fleet/slurm.sh status "$run" >"$work/status" || fail "resubmitted: $(cat "$work/status" "$run/shard-2-of-3.out")"
[[ $(grep -cE '^shard   [123]  done +[0-9]+ records  many winner$' "$work/status") == 3 ]] || fail "status: $(cat "$work/status")"
cmp -n "$(stat -c %s "$work/left.jsonl")" "$work/left.jsonl" "$(log 2)" || fail "the killed shard did not go on where its log ended"
[[ $(grep -c '"status":"entered"' "$(log 2)") == 1 && $(grep -c '"status":"chosen"' "$(log 2)") == 1 ]] || fail "the killed shard raced twice"
[[ $(submit) == "nothing to submit: every shard is done or queued" ]] || fail "shards that are done are submitted again"
ok "the killed shard went on where its log ended, $(wc -l <"$(log 2)") records"

/usr/bin/python3 -c 'import json, sys
fields = [r["field"] for path in sys.argv[1:] for r in map(json.loads, open(path)) if r["status"] == "entered"]
own = [candidate for field in fields for candidate in field[1:]]
assert len(fields) == 3 and len({field[0] for field in fields}) == 1, "not one default"
assert len(own) == len(set(own)) >= 3, "a candidate is in two shards, or one has none"' "$(log 1)" "$(log 2)" "$(log 3)" || fail "shards are no parts of one field"

# A finished shard measures nothing.
cp "$(log 2)" "$work/finished.jsonl"
"$LOOKUPC" tune $model --shard 2/3 --out "$(log 2)" --time 60s "${options[@]}" >"$work/again" 2>&1 || fail "$(cat "$work/again")"
{ grep -q '^shard 2/3 was finished before: nothing measured$' "$work/again" && cmp "$work/finished.jsonl" "$(log 2)" && cmp "$work/before.jsonl" "$(log 1)"; } ||
    fail "a finished shard is measured again: $(cat "$work/again")"
ok "a finished shard measures nothing"

# ## One choice

# choices STORE LOG...: merges the logs one by one, then writes what the store says into STORE.lua, and all it has into STORE.jsonl.
choices() {
    local store=$work/$1 file
    for file in "${@:2}"; do LOOKUPC_STORE=$store.sqlite "$LOOKUPC" tuned merge "$file" >"$work/log" 2>&1 || fail "$(cat "$work/log")"; done
    LOOKUPC_STORE=$store.sqlite "$LOOKUPC" tune $model --batch 64 --isa scalar --cflags -O0 --time 0 -o "$store.lua" >"$store.said" 2>&1 || fail "$(cat "$store.said")"
    LOOKUPC_STORE=$store.sqlite "$LOOKUPC" tuned list --json | grep -o '"id": *"[0-9a-f]*"' | cut -d'"' -f4 >"$work/keys"
    [[ $(wc -l <"$work/keys") == 1 ]] || fail "$1: $(wc -l <"$work/keys") keys"
    LOOKUPC_STORE=$store.sqlite "$LOOKUPC" tuned export "$(cat "$work/keys")" -o "$store.jsonl" >"$work/log"
    sed -i "s|$store|STORE|g" "$store.said"
}

cat "$(log 1)" "$(log 2)" "$(log 3)" >"$work/unsharded.jsonl"
choices one "$work/unsharded.jsonl"
choices forwards "$(log 1)" "$(log 2)" "$(log 3)"
choices backwards "$(log 3)" "$(log 2)" "$(log 1)"
choices partly "$(log 3)" "$work/partial.jsonl" "$(log 1)" "$(log 2)" "$(log 3)"
harness/fleet/slurm.sh merge "$run" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
choices store
for other in forwards backwards partly store; do
    for what in lua jsonl said; do cmp "$work/one.$what" "$work/$other.$what" || fail "$other: other choices than those of one log"; done
done
"$LOOKUPC" emit $model --isa scalar --tuned "$work/one.lua" -o "$work/bundle" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
ok "four orders of merging and one log: the same $(wc -l <"$work/one.jsonl") records and choices: $(grep -o '"decided":"[a-z ]*"' "$work/one.jsonl" | cut -d'"' -f4 | paste -sd,)"

# ## GNU parallel

command -v parallel >/dev/null || {
    echo "skipped: fleet: parallel is not there"
    exit 0
}
run=$work/by_parallel
by_parallel() { harness/fleet/parallel.sh run $model "$run" --shards 3 --time 60s -- "${options[@]}"; }
mkdir "$run"
by_parallel >"$work/log" 2>&1 || fail "parallel: $(cat "$work/log" "$run"/*.out)"
rm "$run/shard-3-of-3.done"
cp "$(log 3)" "$work/finished.jsonl"
by_parallel >"$work/log" 2>&1 || fail "parallel: $(cat "$work/log" "$run"/*.out)"
[[ $(tail -n 1 "$work/log") == "3 of 3 shards done, 0 queued or running" && $(wc -l <"$run/parallel.log") == 2 ]] || fail "parallel: $(cat "$work/log" "$run/parallel.log")"
cmp "$work/finished.jsonl" "$(log 3)" || fail "parallel: a finished shard was measured again"
harness/fleet/parallel.sh merge "$run" >"$work/log" 2>&1 || fail "parallel: $(cat "$work/log")"
ok "the same by GNU parallel"

# A shard that has decided nothing is finished, one that fails is not.
for status in 3 1; do
    # shellcheck disable=SC2016 # $6 is the script's
    printf '#!/bin/bash\n: >"$6"\nexit %d\n' $status >"$work/ends_with_$status"
    chmod +x "$work/ends_with_$status"
    LOOKUPC=$work/ends_with_$status harness/fleet/parallel.sh run $model "$work/idle_$status" --shards 2 >"$work/log" 2>&1 || true
    tail -n 1 "$work/log" >>"$work/ended"
done
[[ $(cat "$work/ended") == "2 of 2 shards done, 0 queued or running"$'\n'"0 of 2 shards done, 0 queued or running" ]] || fail "$(cat "$work/ended")"
ok "a shard without a decision is finished"
