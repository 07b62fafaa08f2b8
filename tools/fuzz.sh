#!/bin/bash
# fuzz.sh FOLDER SECONDS [AT_ONCE]: runs each fuzz target of FOLDER from its kept corpus, fuzz/corpus/NAME. New inputs
# stay in FOLDER/corpus/NAME; with KEEP=1 they are merged, minimised, into the kept corpus. One line per target; ends
# with 1 if any failed or there is none, and names the input that did it.
set -u
folder=$1 seconds=$2 at_once=${3:-1}
export ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1

run_one() {
  local target=$1 name kept grown crashes log extra=()
  name=$(basename "$target" _fuzz)
  kept=fuzz/corpus/$name grown=$folder/corpus/$name crashes=$folder/crashes/$name log=$folder/$name.log
  mkdir -p "$grown" "$crashes"
  [ -d "$kept" ] && extra+=("$kept")
  [ -f "fuzz/$name.dict" ] && extra+=("-dict=fuzz/$name.dict")
  if ! "$target" "$grown" "${extra[@]}" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -artifact_prefix="$crashes/" -print_final_stats=1 >"$log" 2>&1; then
    tail -25 "$log"
    echo "fuzz $name: FAILED; the input is in $crashes, the whole output in $log"
    return 1
  fi
  echo "fuzz $name: passed, $(sed -nE 's/^stat::number_of_executed_units: *//p' "$log") runs in $seconds s"
  if [ "${KEEP:-}" = 1 ]; then
    mkdir -p "$kept" && "$target" -merge=1 "$kept" "$grown" >>"$log" 2>&1
  fi
}

failed=0 running=0 found=0
for target in "$folder"/fuzz/*_fuzz; do
  [ -x "$target" ] || continue
  found=1
  if [ "$running" -ge "$at_once" ]; then
    wait -n || failed=1
    running=$((running - 1))
  fi
  run_one "$target" &
  running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
  wait -n || failed=1
  running=$((running - 1))
done
[ $found -eq 1 ] || echo "fuzz: FAILED; there are no targets in $folder/fuzz"
[ $failed -eq 0 ] && [ $found -eq 1 ]
