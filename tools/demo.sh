#!/bin/bash
# demo.sh: what `make demo` does once everything is built: the example program, unchanged, under stepscope run; then the
# report of what was recorded, in the terminal and as a page.
set -eu
program=examples/train_gpt.py
export PATH="$PWD/.venv/bin:$PATH"
stepscope run -- python "$program"
runs=${STEPSCOPE_OUT:-stepscope}/train_gpt
run=$runs/$(ls -t "$runs" | head -n 1)
stepscope report "$run"
echo
if said=$(stepscope report "$run" --html "$run/report.html" 2>&1); then
  echo "The same as a page: $run/report.html"
  echo "With its timeline, in the browser: build/stepscope view $run"
elif [[ $said == *"no HTML page"* ]]; then
  echo "${said#stepscope: }"
else
  echo "$said" >&2
  exit 1
fi
