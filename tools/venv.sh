#!/bin/bash
# venv.sh base|torch|tests|link: the project's Python environment in .venv.
#
# base:  the environment and the tools of tools/requirements-dev.txt. Where the chosen Python imports torch, the
#        environment sees that Python's packages, so that nothing is installed over its torch.
# torch: torch==2.13.0 where no torch is seen. Exactly this requirement: pip takes a CPU build where one is provided.
#        numpy comes with it: torch asks for none and warns when there is none.
# tests: what tests/requirements.txt names (pandas, polars …), beside the numpy that torch was made with; where that is
#        impossible the tests that need them are skipped, and say so.
# link:  .venv/bin/stepscope is build/stepscope, and `import stepscope` is python/stepscope.
set -eu
python=${PYTHON:-python3}
venv=.venv
purelib='import sysconfig; print(sysconfig.get_paths()["purelib"])'

# What torch and the tests need is compiled when it is first imported: most of it never is.
install() { "$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-compile "$@"; }

say() { echo "setup: $*" >&2; }

# Seen through links and version managers' shims; a virtual environment is one of its own.
identity() {
  "$python" -c 'import os, sys; print(os.path.realpath(sys.executable), *[sys.prefix] * (sys.prefix != sys.base_prefix))'
}

# An environment made from an environment sees the Python below that one only: it is told where the packages are.
see_packages() {
  "$python" -c '
import sys
if sys.prefix != sys.base_prefix:
    for path in sys.path:
        if path.endswith("-packages"):
            print(f"import site; site.addsitedir({path!r})")' >"$("$venv/bin/python" -c "$purelib")/chosen_python.pth"
}

base() {
  local site=()
  local chosen made_from
  chosen=$(identity)
  made_from=$(cat "$venv/.python" 2>/dev/null) || made_from=
  # Activated, it is itself the Python that was chosen.
  if [ -n "$made_from" ] && [ "${chosen#* }" -ef "$venv" ]; then chosen=$made_from; fi
  # A .venv made from another Python than the one asked for is made anew.
  if [ -n "$made_from" ] && [ "$made_from" != "$chosen" ]; then rm -rf "$venv"; fi
  if [ "$venv/.base" -nt tools/requirements-dev.txt ] && [ "$venv/.base" -nt tools/venv.sh ]; then return; fi
  if ! [ -x "$venv/bin/python" ]; then
    if "$python" -c 'import torch' 2>/dev/null; then site=(--system-site-packages); fi
    "$python" -m venv "${site[@]}" "$venv"
    if [ ${#site[@]} -gt 0 ]; then see_packages; fi
  fi
  local pip=("$venv/bin/python" -m pip install -qq --disable-pip-version-check -r tools/requirements-dev.txt)
  "${pip[@]}" || { say "pip could not install tools/requirements-dev.txt: is there a network or a package mirror?"; exit 1; }
  # What the chosen Python has already in these versions is seen, but its commands are elsewhere.
  if ! [ -x "$venv/bin/mypy" ] || ! [ -x "$venv/bin/pytest" ] || ! [ -x "$venv/bin/ruff" ]; then
    "${pip[@]}" --ignore-installed --no-deps || { say "pip could not install tools/requirements-dev.txt once more"; exit 1; }
  fi
  echo "$chosen" >"$venv/.python"
  touch "$venv/.base"
}

torch() {
  [ "$venv/.torch" -nt "$venv/.python" ] && return
  if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
    say "installing torch==2.13.0 (a GPU build is several GB; README.md says how to choose a CPU build)"
    install torch==2.13.0 numpy ||
      { say "pip could not install torch==2.13.0; name a Python that has torch: make PYTHON=/path/to/python3 …"; exit 1; }
  fi
  "$venv/bin/python" -W ignore -c 'import torch; print("torch", torch.__version__)' >"$venv/.torch"
}

tests() {
  [ -f tests/requirements.txt ] || return 0
  [ "$venv/.tests" -nt tests/requirements.txt ] && [ "$venv/.tests" -nt "$venv/.python" ] && return
  local numpy
  numpy=$("$venv/bin/python" -W ignore -c 'import numpy; print(numpy.__version__)' 2>/dev/null) || numpy=
  echo "${numpy:+numpy==$numpy}" >"$venv/constraints.txt"
  install -c "$venv/constraints.txt" -r tests/requirements.txt ||
    say "pip could not install tests/requirements.txt beside numpy ${numpy:-(none)}: the tests that need it are skipped"
  touch "$venv/.tests"
}

link() {
  ln -sfn ../../build/stepscope "$venv/bin/stepscope"
  local packages
  packages=$("$venv/bin/python" -c "$purelib")
  echo "$PWD/python" >"$packages/stepscope_source.pth"
}

"$1"
