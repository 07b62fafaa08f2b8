#!/bin/bash
# record.sh OUT [PART...]: on a machine with a GPU, what the tests of tests/traces/cuda and the figures of the docs are made
# of. `stepscope` and `python3` with torch are those of PATH. One part that fails does not stop the others; OUT/log.txt
# says what each printed, its exit code and its seconds.
set -u
out=$1
shift
parts=${*:-machine demo forms graphs steps widths telemetry memory attach kept}
here=$(cd "$(dirname "$0")" && pwd)
job=$here/job.py
mkdir -p "$out"

say() { # NAME COMMAND...
  local name=$1 start=$SECONDS
  shift
  echo "== $name: $*"
  timeout -k 5 "${LIMIT:-60}" "$@" 2>&1
  echo "== $name: exit $?, $((SECONDS - start)) s"
}

record() { # NAME OPTIONS... -- JOB...
  local name=$1
  shift
  say "$name" stepscope run --config off --out "$out/runs" --name "$name" "$@"
}

machine() {
  say nvidia-smi nvidia-smi
  say doctor stepscope doctor
}

demo() { record demo -- python3 "$here/../../examples/train_gpt.py"; }

# Two steps each, so that a trace is small; two windows of the first.
forms() {
  record eager --steps 20:22,40:42 -- python3 "$job" eager
  record compiled --steps 20:22 -- python3 "$job" compiled
  record inference --steps 20:22 -- python3 "$job" inference
  record loader --steps 20:22 -- python3 "$job" loader --steps 40
  record item --steps 20:22 -- python3 "$job" item
  record pageable --steps 20:22 -- python3 "$job" pageable
  record pair --with shapes,memory,modules,execution-trace --steps 20:22 -- python3 "$job" eager
}

graphs() {
  record graph --steps 20:22 -- python3 "$job" graph
  record graph_auto -- python3 "$job" graph
  record graph_pair --with shapes,execution-trace --steps 20:22 -- python3 "$job" graph
}

# What a step takes without us, with marks alone, with a window.
steps() {
  for round in 1 2; do
    say "plain $round" python3 "$job" eager --steps 1000
    record "marks_$round" --trace=false -- python3 "$job" eager --steps 1000
    record "window_$round" -- python3 "$job" eager --steps 1000
  done
}

# What two changes give that are to be predicted: no look at each layer's values, and half a layer's width.
widths() {
  say item python3 "$job" item --steps 500
  record wide -- python3 "$job" eager --width 2048 --steps 200
  say wide python3 "$job" eager --width 2048 --steps 200
  say narrow python3 "$job" eager --width 2048 --steps 200 --narrow
}

telemetry() {
  record even --seconds 4:7 --with none --telemetry gpu:50ms,gpm:100ms,cpu,host,memory -- \
    python3 "$job" eager --width 2048 --pause 15 --steps 400
}

memory() {
  record history --memory-history --memory-every 20 --max-entries 5000 -- python3 "$job" eager --steps 45
  record state --memory -- python3 "$job" eager --steps 40
  record greedy --memory-history --max-entries 5000 -- python3 "$job" greedy --steps 400
}

# One process before, beside and after telemetry and a window; and again with CUPTI left in it afterwards.
attach() {
  local pid
  python3 "$job" eager --steps 3500 --each >"$out/attached.txt" 2>&1 &
  pid=$!
  sleep 10
  say monitor stepscope monitor "$pid" --time 4 --out "$out/runs"
  sleep 4
  say attach stepscope attach "$pid" --steps 3 --telemetry off --out "$out/runs"
  wait "$pid"
  echo "== attached job: exit $?"
}

kept() {
  local pid
  TEARDOWN_CUPTI=0 python3 "$job" eager --steps 1800 --each >"$out/kept.txt" 2>&1 &
  pid=$!
  sleep 10
  say attach_kept stepscope attach "$pid" --steps 3 --telemetry off --out "$out/runs"
  wait "$pid"
  echo "== attached job: exit $?"
}

for part in $parts; do "$part"; done >"$out/log.txt"
grep '^== .*: exit' "$out/log.txt"
