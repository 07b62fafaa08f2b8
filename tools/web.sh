#!/bin/bash
# web.sh install|test|types: the page's side of the targets. Without node 18 or newer, or without web/, it says so and
# succeeds: the command line does not need it, and `stepscope report --html` tells what was left out.
set -eu
[ -f web/package.json ] || { echo "web: there is no web/package.json yet; left out" >&2; exit 0; }
major=$(node --version 2>/dev/null | sed -E 's/^v([0-9]+).*/\1/') || true
if [ "${major:-0}" -lt 18 ] || ! command -v npm >/dev/null; then
  echo "web: no node 18 or newer with npm here; the HTML page is left out (install nodejs and npm to have it)" >&2
  exit 0
fi
cd web
if ! [ -f node_modules/.stamp ] || [ package-lock.json -nt node_modules/.stamp ]; then
  npm ci --silent --no-audit --no-fund ||
    { echo "web: npm could not fetch the packages of web/package-lock.json: is there a network or a mirror?" >&2; exit 1; }
  touch node_modules/.stamp
fi
case $1 in
  install) ;;
  test) npm test --silent ;;
  types) npm exec --offline -- tsc --noEmit -p . ;;
esac
