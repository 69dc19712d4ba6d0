#!/bin/bash
# lookupc as other systems build it: what is missing is named, the generator needs few libraries, and its Debian package
# installs, works and leaves nothing behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED package: $*"
    exit 1
}

ok() { echo "ok     package: $* ($SECONDS s from the start)"; }

quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "$*"; }; }

# lacks OPTIONS...: configure without any library found; its message.
lacks() {
    ! PKG_CONFIG_LIBDIR=$work cmake -S . -B "$work/lacks" "$@" >"$work/log" 2>&1 || fail "configure without libraries succeeds"
    grep -A9 'lookupc: missing:' "$work/log" | tr '\n' ' ' | tr -s ' '
}
message=$(lacks)
for text in 'missing: Lua 5.4, library, jansson, nettle, SQLite 3, utf8proc' \
    'Debian: apt install liblua5.4-dev libjansson-dev nettle-dev libsqlite3-dev libutf8proc-dev Fedora: dnf install lua-devel jansson-devel ' \
    'Arch: pacman -S lua jansson ' 'Homebrew: brew install lua jansson '; do
    [[ $message == *"$text"* ]] || fail "\"$message\" lacks \"$text\""
done
[[ $message != *OpenBLAS* && $(lacks -DLOOKUPC_BENCH=ON) == *'OpenBLAS (LOOKUPC_BENCH)'* ]] || fail "libraries of LOOKUPC_BENCH"
ok "configure names what is missing as four systems call it"

[[ ${LOOKUPC_EFFORT-} == full ]] || exit 0

mkdir "$work/clone"
git ls-files -z | xargs -0 cp --parents -t "$work/clone"
SECONDS=0
quietly cmake -S "$work/clone" -B "$work/build"
quietly cmake --build "$work/build" --parallel 2
program=$work/build/lookupc
echo "built in $SECONDS s"
for library in openblas dnnl benchmark cmocka stdc++; do
    ! grep -q "lib$library" < <(ldd "$program") || fail "the generator needs $library"
done
quietly "$program" emit gen/models/tiny.lua -o "$work/tiny"
quietly "$program" verify gen/models/tiny.lua --isa scalar
for command in "bench gen/models/tiny.lua" "tune gen/models/tiny.lua -o $work/tuned.lua"; do
    # shellcheck disable=SC2086
    ! "$program" $command >"$work/log" 2>&1 || fail "$command works without lookupc-measure"
    grep -qx "lookupc: $work/build/lookupc-measure: is missing: bench and tune need it; .*" "$work/log" || fail "$command: $(cat "$work/log")"
done
ok "a generator alone: few libraries, and one line for what it cannot do"

(cd "$work/build" && quietly cpack)
package=$(echo "$work"/build/*.deb)
if type -P lintian >"$work/log"; then
    (cd "$(dirname "${LOOKUPC:-build/lookupc}")" && quietly cpack -B "$work/all") # with all parts that are built here
    for one in "$package" "$work"/all/*.deb; do
        quietly lintian --allow-root "$one"
        [[ ! -s $work/log ]] || fail "lintian says: $(cat "$work/log")"
    done
    ok "lintian says nothing"
else
    echo "skipped: package: lintian is missing"
fi
if ((EUID == 0)); then
    root=$work/root
    mkdir -p "$root"/var/lib/dpkg/{info,updates}
    touch "$root"/var/lib/dpkg/status
    quietly dpkg --root="$root" --force-depends --log="$work/dpkg.log" -i "$package"
    quietly "$root/usr/bin/lookupc" emit "$root/usr/share/lookupc/models/tiny.lua" -o "$work/from_root"
    diff -r "$work/tiny" "$work/from_root" || fail "the installed lookupc emits something else"
    quietly dpkg --root="$root" --log="$work/dpkg.log" -P lookupc
    left=$(find "$root" -mindepth 1 -path "$root/var" -prune -o -print)
    [[ -z $left ]] || fail "removing the package leaves $left"
    ok "the Debian package installs in a fresh root, emits the same and leaves nothing behind"
else
    echo "skipped: package: only root can install it"
fi
