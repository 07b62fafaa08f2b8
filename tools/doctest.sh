#!/bin/bash
# doctest.sh FOLDER [OPTION…]: runs the C++ unit tests of one build folder with the sanitizers' strictest settings.
set -eu
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
# From its own folder: a compiler cache may have made the paths in __FILE__ relative to it.
cd "$1"
shift
run() { ./stepscope_tests --no-intro --no-version "$@"; }
[ $# -eq 0 ] || { run "$@"; exit; }
# Side by side: the collector's tests mostly wait for processes that they started and for daemons that give up, and those
# of the session, which open the corpus again and again, take as long as all others together, one of them half of that.
status=0 started=()
beside() {
  local name=$1
  shift
  run "$@" >"${name}_tests.log" 2>&1 &
  started+=($!)
}
beside daemon -sf='*src/collect/kineto_daemon/*'
beside collect -sf='*src/collect/*' -sfe='*src/collect/kineto_daemon/*'
beside pairs -sf='*/diff_corpus_test.cc'
beside session -sf='*src/session/*' -sfe='*/diff_corpus_test.cc'
run -sfe='*src/collect/*,*src/session/*' || status=1
for pid in "${started[@]}"; do wait "$pid" || status=1; done
cat {daemon,collect,pairs,session}_tests.log
exit $status
