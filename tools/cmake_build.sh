#!/bin/bash
# cmake_build.sh PRESET FOLDER JOBS [TARGET…]: configures once (a change of CMake files or lists reconfigures by itself), builds.
set -eu
preset=$1 folder=$2 jobs=$3
shift 3
if [ ! -f "$folder/build.ninja" ] || [ CMakePresets.json -nt "$folder/build.ninja" ]; then
  mkdir -p "$folder"
  cmake --preset "$preset" -B "$folder" >"$folder/configure.log" 2>&1 || { tail -30 "$folder/configure.log" >&2; exit 1; }
  echo "compiling into $folder: some minutes, the first time" >&2
fi
quiet=--quiet  # ninja 1.11; Ubuntu 22.04 has 1.10
ninja --quiet --version >/dev/null 2>&1 || quiet=
exec ninja -C "$folder" -j "$jobs" $quiet "$@"
