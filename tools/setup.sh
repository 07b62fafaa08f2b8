#!/bin/bash
# Makes the machine ready for one of the make targets: `tools/setup.sh build|test|check|bench|fuzz …`.
#
# Each need is a row of the table below: what it is for, how to see that it is there (a command, a header, a Python
# module), and the Debian/Ubuntu package that brings it. Only what is missing is installed, through apt-get, with sudo
# where the user is not root; what came from elsewhere (a compiler of one's own, say) counts as present. Where
# installing is not possible the script says in one sentence what to install, and ends with 1.
set -u

PYTHON=${PYTHON:-python3}
want=" $* "

# for   probe                          package
needs='
build   cmd:cmake                      cmake
build   cmd:ninja                      ninja-build
build   compiler:c++                   g++
build   header:fmt/format.h            libfmt-dev
build   header:simdjson.h              libsimdjson-dev
build   header:isa-l.h                 libisal-dev
build   header:zstd.h                  libzstd-dev
build   header:sqlite3.h               libsqlite3-dev
build   header:CLI/CLI.hpp             libcli11-dev
build   header:tl/expected.hpp         libexpected-dev
build   venv:                          python3-venv
test    header:doctest/doctest.h       doctest-dev
test    cmd:git                        git
fuzz    cmd:clang++-14                 clang-14
fuzz    fuzzer:                        libclang-rt-14-dev
check   cmd:clang-format-14            clang-format-14
check   cmd:clang-tidy-14              clang-tidy-14
check   cmd:git                        git
'

has_header() {
  local dir
  for dir in ${CPATH:+${CPATH//:/ }} /usr/include /usr/local/include; do
    [ -e "$dir/$1" ] && return 0
  done
  return 1
}

is_there() {
  case $1 in
    cmd:*) command -v "${1#cmd:}" >/dev/null ;;
    compiler:*) command -v "${CXX:-c++}" >/dev/null || command -v g++ >/dev/null ;;
    header:*) has_header "${1#header:}" ;;
    venv:) "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ;;
    fuzzer:) ls /usr/lib/llvm-14/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1 ;;
  esac
}

# The program behind a name, seen through links and version managers' shims.
real_python() { "$PYTHON" -c 'import os, sys; print(os.path.realpath(sys.executable))'; }

say() { echo "setup: $*" >&2; }

if ! command -v "$PYTHON" >/dev/null; then
  say "No Python found as '$PYTHON'; install python3 (3.9 or newer), or name one with make PYTHON=/path/to/python."
  exit 1
fi
if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 9))'; then
  say "$("$PYTHON" --version) is too old: install Python 3.9 or newer, or name one with make PYTHON=/path/to/python."
  exit 1
fi

missing=()
while read -r for_what probe package; do
  [ -n "$for_what" ] || continue
  [[ $want == *" $for_what "* ]] || continue
  is_there "$probe" || missing+=("$package")
done <<<"$needs"
[ ${#missing[@]} -gt 0 ] || exit 0

list="${missing[*]}"
# ensurepip belongs to the Python that runs it: apt can help the system's Python only.
if [[ " $list " == *" python3-venv "* ]] && ! [ "$(real_python)" -ef /usr/bin/python3 ]; then
  say "'$PYTHON' cannot make virtual environments (no ensurepip): install its venv package, or use another with make PYTHON=…."
  exit 1
fi
if ! command -v apt-get >/dev/null; then
  say "This machine has no apt-get; install what these Debian packages hold, then run make again: $list."
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    say "Packages are missing and there is no sudo; ask someone with root rights to run: apt-get install $list"
    exit 1
  fi
  if ! sudo -n true 2>/dev/null && ! [ -t 0 ]; then
    say "Packages are missing and sudo wants a password; run this once: sudo apt-get install $list"
    exit 1
  fi
  as_root=(sudo)
fi

say "installing $list"
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"${install[@]}" >"$log" 2>&1 && exit 0
# The package lists may be missing (a fresh container) or old: fetch them once and try again.
"${as_root[@]}" apt-get update -q >>"$log" 2>&1
"${install[@]}" >>"$log" 2>&1 && exit 0
tail -5 "$log" >&2
say "apt-get could not install the packages (its last words are above); install them by hand: apt-get install $list"
exit 1
