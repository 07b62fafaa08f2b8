#!/bin/bash
# demo.sh: what `make demo` does once everything is built: the example program, unchanged, under stepscope run.
set -eu
program=examples/train_gpt.py
[ -f "$program" ] || { echo "demo: there is no $program yet" >&2; exit 1; }
export PATH="$PWD/.venv/bin:$PATH"
exec stepscope run -- python "$program"
