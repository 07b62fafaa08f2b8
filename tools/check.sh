#!/bin/bash
# check.sh JOBS: all that `make check` looks at, each part even when one before it failed; one line per part.
set -uo pipefail
jobs=${1:-1} failed=0
bin=.venv/bin
tracked() { git ls-files -co --exclude-standard -- "$@" | while read -r file; do [ -f "$file" ] && echo "$file"; done; }

part() {
  local name=$1 started=$SECONDS log
  shift
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    echo "check $name: ok ($((SECONDS - started)) s)"
  else
    cat "$log"
    echo "check $name: FAILED ($((SECONDS - started)) s)"
    failed=1
  fi
  rm -f "$log"
}

layout() {
  local wrong
  wrong=$(tracked '*.cc' '*.h' | xargs -r clang-format-14 --dry-run 2>&1 | sed -nE 's/^([^ :]+):[0-9]+:.*/\1/p' | sort -u)
  [ -z "$wrong" ] || { echo "make fmt would change:"; echo "$wrong"; return 1; }
}

# Of each folder's files together: most of the time goes into the headers that they share.
# xargs ends with 123 when one of its commands failed.
tidy() {
  local status=0 told
  cmake -G Ninja -B build/tidy -DCMAKE_BUILD_TYPE=Release -DSTEPSCOPE_TESTS=OFF -DSTEPSCOPE_BATCHES=ON || return 1
  ninja -C build/tidy generated/source_id.cc generated/bundle.cc || return 1  # which batches include
  told=$(sed -nE 's/^ *"file": "(.*)",?$/\1/p' build/tidy/compile_commands.json | grep -v '/generated/' | sort -u |
    xargs -r -P "$jobs" -n 1 "$bin/clang-tidy" -p build/tidy --quiet --extra-arg=-Wno-unknown-warning-option 2>&1) || status=1
  grep -v -E '^[0-9]+ warnings? generated|^Suppressed|^Use -header-filter' <<<"$told"
  return $status
}

types() {
  "$bin/mypy" --no-error-summary --cache-dir build/mypy
}

fuzz() {
  tools/cmake_build.sh dev build-dev "$jobs" fuzz_targets && tools/fuzz.sh build-dev 10 "$jobs"
}

part layers "$bin/python" tools/check_layers.py
part includes "$bin/python" tools/check_includes.py
part layout layout
part ruff "$bin/ruff" check --quiet .
part "python layout" "$bin/ruff" format --quiet --check .
part mypy types
part tsc tools/web.sh types
part notices "$bin/python" tools/notices.py --check build
part documents "$bin/python" tools/check_docs.py
[ "${SKIP_TIDY:-}" ] || part clang-tidy tidy
[ "${SKIP_FUZZ:-}" ] || part "fuzzing, 10 s per target" fuzz
[ $failed -eq 0 ]
