#!/bin/bash
# make_dist.sh BUILD [OUT]: OUT/stepscope-VERSION-linux-ARCH/ and its .tar.gz, from what BUILD holds.
#
#   bin/stepscope   the command line            python/stepscope   the Python package and the hooks of stepscope run
#   lib/            libstepscope.so and every library outside the C library that it or the command line needs
#
# Programs find lib/ by a relative rpath, so the folder may stand anywhere. The C library is the machine's own: the
# newest symbol version that is needed is written into README.txt of the folder.
set -euo pipefail
build=$1 out=${2:-dist}
version=$(sed -nE 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
name=stepscope-$version-linux-$(uname -m)
folder=$out/$name
rm -rf "$folder" "$folder.tar.gz"
mkdir -p "$folder/lib"
cmake --install "$build" --prefix "$folder" --component product --strip >/dev/null

# The libraries of glibc, which every Linux has and which must match the machine's loader.
platform='^(linux-vdso|ld-linux|libc|libm|libpthread|libdl|librt)[-.]'
products=("$folder/bin/stepscope")
[ -f "$folder/lib/libstepscope.so" ] && products+=("$folder/lib/libstepscope.so")
for product in "$build/stepscope" "$build/libstepscope.so"; do
  [ -f "$product" ] || continue
  ldd "$product" | awk '$2 == "=>" {print $1, $3}' | while read -r soname path; do
    [[ $soname =~ $platform ]] || cp -L "$path" "$folder/lib/$soname"
  done
done

glibc=$(objdump -T "${products[@]}" "$folder"/lib/*.so* | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
cat >"$folder/README.txt" <<TEXT
stepscope $version for Linux on $(uname -m); needs a C library of $glibc or newer and nothing else.

  bin/stepscope --help               the command line; this folder may stand anywhere
  PYTHONPATH=$PWD/$name/python       for "import stepscope" (Python 3.9 or newer)
TEXT
sed -i "s|$PWD/||" "$folder/README.txt"

tar -C "$out" --sort=name --owner=0 --group=0 --numeric-owner -czf "$folder.tar.gz" "$name"
bytes=$(stat -c %s "$folder.tar.gz")
[ "$bytes" -le $((40 * 1024 * 1024)) ] || { echo "dist: $folder.tar.gz is $bytes bytes, over 40 MiB" >&2; exit 1; }
echo "$folder.tar.gz ($((bytes / 1024)) KiB, $glibc)"
