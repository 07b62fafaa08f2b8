#!/bin/bash
# Makes the machine ready for one of the make targets: `tools/setup.sh build|page|test|browser|check|fuzz …`.
#
# Each need is a row of the table below: what it is for, how to see that it is there (a command, a header, a Python
# module), and the Debian/Ubuntu package that brings it (a|b: the first that apt knows). Only what is missing is installed, through apt-get, with sudo
# where the user is not root; what came from elsewhere (a compiler of one's own, say) counts as present. Where
# installing is not possible the script says in one sentence what to install, and ends with 1.
#
# The rows of `page` and `browser` are wishes, installed where that is possible without asking: node for the HTML page,
# where apt's is new enough (Ubuntu 22.04 has 12; else everything but the page is built, and tools/web.sh says so), and
# a browser for the tests of the page, where apt has a real one (on Ubuntu it is a snap; those tests then say so).
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
build   header:event2/http.h           libevent-dev
build   header:CLI/CLI.hpp             libcli11-dev
build   header:tl/expected.hpp         libexpected-dev
build   header:toml.hpp                libtoml11-dev
build   venv:                          python3-venv
page    node:18                        nodejs
page    cmd:npm                        npm
test    header:doctest/doctest.h       doctest-dev
test    cmd:git                        git
test    cmd:neato                      graphviz
browser browser:                       chromium
fuzz    cmd:clang++-14                 clang-14
fuzz    fuzzer:                        libclang-rt-14-dev|libclang-common-14-dev
check   cmd:clang-format-14            clang-format-14
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
    node:*) [ "$(node --version 2>/dev/null | sed -E 's/^v([0-9]+).*/\1/')" -ge "${1#node:}" ] 2>/dev/null ;;
    browser:) [ -e "${STEPSCOPE_CHROMIUM:-/usr/bin/chromium}" ] ;;
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

missing=() node=() browser=()
while read -r for_what probe package; do
  [ -n "$for_what" ] || continue
  [[ $want == *" $for_what "* ]] || continue
  is_there "$probe" && continue
  case $for_what in
    page) node+=("$package") ;;
    browser) browser+=("$package") ;;
    *) missing+=("$package") ;;
  esac
done <<<"$needs"
[ $((${#missing[@]} + ${#node[@]} + ${#browser[@]})) -gt 0 ] || exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
log=$(mktemp)
trap 'rm -f "$log"' EXIT

update() { "${as_root[@]}" apt-get update -q >>"$log" 2>&1; }

# What apt would install, as a major version; nothing where its lists are missing.
candidate() { apt-cache policy "$1" 2>/dev/null | sed -nE 's/^ *Candidate: ([0-9]+).*/\1/p'; }

# The packages' names; of a|b the first where apt knows none.
names() {
  local package name chosen out=()
  for package; do
    chosen=${package%%|*}
    for name in ${package//|/ }; do
      if [[ $package == *"|"* ]] && [ -n "$(candidate "$name")" ]; then chosen=$name && break; fi
    done
    out+=("$chosen")
  done
  echo "${out[*]}"
}

install_known() {
  local packages
  read -ra packages <<<"$(names "$@")"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${packages[@]}" >>"$log" 2>&1
}

# The package lists may be missing (a fresh container) or old: fetch them once and try again.
install() { install_known "$@" || { update; install_known "$@"; }; }

need() {
  local list all
  list=$(names "${missing[@]}")
  # ensurepip belongs to the Python that runs it: apt can help the system's Python only.
  if [[ " $list " == *" python3-venv "* ]] && ! [ "$(real_python)" -ef /usr/bin/python3 ]; then
    say "'$PYTHON' cannot make virtual environments (no ensurepip): install its venv package, or use another with make PYTHON=…."
    exit 1
  fi
  if ! command -v apt-get >/dev/null; then
    say "This machine has no apt-get; install what these Debian packages hold, then run make again: $list."
    exit 1
  fi
  if [ "$(id -u)" -ne 0 ]; then
    all=$list
    [ ${#node[@]} -eq 0 ] || [ "$(candidate nodejs)" -lt 18 ] 2>/dev/null || all+=" ${node[*]}"
    if ! command -v sudo >/dev/null; then
      say "Packages are missing and there is no sudo; ask someone with root rights to run: apt-get install $all"
      exit 1
    fi
    if ! sudo -n true 2>/dev/null && ! [ -t 0 ]; then
      say "Packages are missing and sudo wants a password; run this once: sudo apt-get install $all"
      exit 1
    fi
  fi
  say "installing $list"
  install "${missing[@]}" && return
  tail -5 "$log" >&2
  say "apt-get could not install the packages (its last words are above); install them by hand: apt-get install $list"
  exit 1
}

can_install_unasked() {
  command -v apt-get >/dev/null || return
  [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null || return
  # Any package that is always there: without the lists apt knows no version of it.
  [ -n "$(candidate nodejs)" ] || update
}

# wish WHAT-FOR PACKAGE…
wish() {
  local what_for=$1
  shift
  say "installing $* ($what_for)"
  install "$@" || say "apt-get could not install $*"
}

wish_node() {
  # Where apt's node is there already, an older one hides it: nothing to install.
  ! dpkg-query -W nodejs npm >/dev/null 2>&1 || return
  [ "$(candidate nodejs)" -ge 18 ] 2>/dev/null || return
  wish "for the HTML page" "${node[@]}"
}

[ ${#missing[@]} -eq 0 ] || need
if [ $((${#node[@]} + ${#browser[@]})) -gt 0 ] && can_install_unasked; then
  [ ${#node[@]} -eq 0 ] || wish_node
  [ ${#browser[@]} -eq 0 ] || [ -z "$(candidate chromium)" ] || wish "for the tests of the page" "${browser[@]}"
fi
exit 0
