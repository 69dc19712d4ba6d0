#!/bin/bash
# Shards of a tuning on several devices by GNU parallel: they run here, and their candidates on the devices, which share no folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export LOOKUPC=${LOOKUPC:-$PWD/build/lookupc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LOOKUPC_STORE=$work/store.sqlite

fail() {
    echo "FAILED devices by parallel: $*"
    exit 1
}

command -v parallel >/dev/null || {
    echo "skipped: devices by parallel: parallel is not there"
    exit 77
}

# A device that is this machine, and notes its name.
cat >"$work/runner" <<END
#!/bin/sh
echo "\$1" >>'$work/hosts'
shift
exec "\$@"
END
chmod +x "$work/runner"
on_devices() {
    harness/fleet/parallel.sh run gen/models/tiny.lua "$work/run" --shards 2 --time 20s --hosts "$1" --runner "$work/runner" -- \
        --batch 1 --choices few.accumulators --isa scalar --cflags -O0
}

said=$(on_devices : 2>&1) && fail "takes this machine for a device"
[[ $said == "parallel.sh: --runner: needs --hosts with names of other machines" ]] || fail "says $said"
on_devices left,right >"$work/log" 2>&1 || fail "$(cat "$work/log" "$work"/run/*.out)"
[[ $(tail -n 1 "$work/log") == "2 of 2 shards done, 0 queued or running" ]] || fail "$(cat "$work/log" "$work"/run/*.out)"
[[ $(sort -u "$work/hosts" | xargs) == "left right" ]] || fail "ran on $(sort -u "$work/hosts" | xargs)"
harness/fleet/parallel.sh merge "$work/run" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
grep -q "records of 2 logs" "$work/log" || fail "$(cat "$work/log")"
echo "ok     devices by parallel: a shard at a time on each"
