// What the tests of the writers share: traces of our own and real ones, and the comparison of what was read back with
// what was written. Not part of the program.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/whole_file.h"
#include "model/trace_compare_fixture.h"
#include "session/run_fixture.h"
#include "write/writer.h"

namespace stepscope::write {

inline const Writer& writer(std::string_view name) {
  for (const Writer& one : writers()) {
    if (one.name == name) return one;
  }
  FAIL("no such writer");
  return writers()[0];
}

inline std::string trace(std::string_view name) {
  return (corpus_fixture::fs::path(__FILE__).parent_path() / "../../tests/traces" / name).string();
}

// Traces of our own, then real ones where they are.
inline std::vector<std::string> traces() {
  std::vector<std::string> all{trace("tiny_train.json"), trace("tiny_cpu.json")};
  if (!corpus_fixture::has_corpus()) return all;
  for (const char* name : {"nccl_parser_config", "amd_trace", "mtia_inference_trace", "call_stack",
                           "ns_resolution_trace", "negative_queue_length_values_check", "cupti_profiler"}) {
    all.push_back((corpus_fixture::corpus() / "hta" / name).string());
  }
  return all;
}

inline bool same_track_order(const Trace& a, const Trace& b) {
  return std::equal(a.tracks.begin(), a.tracks.end(), b.tracks.begin(), b.tracks.end(),
                    [&](const auto& x, const auto& y) {
                      return a.strings[x.process] == b.strings[y.process] && a.strings[x.thread] == b.strings[y.thread];
                    });
}

inline void check_same(const Run& a, const Run& b) {
  REQUIRE_EQ(a.traces.size(), b.traces.size());
  for (std::size_t i = 0; i < a.traces.size(); i++) {
    const Trace &x = a.traces[i], &y = b.traces[i];
    CHECK_EQ(TraceCompare(x, y).contents(), "");
    if (same_track_order(x, y)) CHECK_EQ(first_derived_difference(x, y), "");  // else it has other numbers
    CHECK_EQ(x.rank.rank, y.rank.rank);
    CHECK_EQ(x.rank.world_size, y.rank.world_size);
    CHECK_EQ(x.devices.size(), y.devices.size());
    REQUIRE_EQ(x.metadata.size(), y.metadata.size());
    for (std::size_t k = 0; k < x.metadata.size(); k++) {
      CHECK_EQ(x.metadata[k].key, y.metadata[k].key);
      CHECK_EQ(x.metadata[k].json, y.metadata[k].json);
    }
  }
}

}  // namespace stepscope::write
