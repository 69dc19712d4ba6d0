#!/bin/bash
# masked.sh ISA COMMAND...: runs a test as on a CPU that has no more than that instruction set; skips it where this one has less.
set -euo pipefail
if [[ $1 != scalar ]] && ! grep -qwF "$1" /proc/cpuinfo; then
    printf 'skipped: this CPU has no %s\n' "$1"
    exit 77
fi
export LOOKUPC_CPU=$1
exec "${@:2}"
