#!/bin/bash
# make_wheel.sh OUT [ROOT]: OUT/stepscope-VERSION-py3-none-SYSTEM.whl from the dist folder in OUT (make_dist.sh) and the
# package in ROOT (this checkout). SYSTEM is what the programs really need, see tools/wheel_hook.py.
set -euo pipefail
out=$(realpath "$1") root=$(realpath "${2:-$(dirname "$0")/..}")
folders=("$out"/stepscope-*-linux-*/)
[ ${#folders[@]} -eq 1 ] && [ -d "${folders[0]}" ] || { echo "wheel: there is no dist folder in $out: make dist" >&2; exit 1; }
python=${PY:-$(dirname "$0")/../.venv/bin/python}
rm -f "$out"/stepscope-*.whl
STEPSCOPE_DIST=${folders[0]%/} "$python" -m pip wheel -q --no-deps --disable-pip-version-check --wheel-dir "$out" "$root"
wheel=("$out"/stepscope-*.whl)
echo "${wheel[0]} ($(($(stat -c %s "${wheel[0]}") / 1024)) KiB)"
