// TraceText: the text of a small valid Kineto trace that tests damage, and ways to read a text. Not part of the
// program.
//
//   TraceText t;                    // 151 events: 83 slices, 20 memory events, 40 flows, 3 counter values
//   t.events[40].resize(30);        // damage one
//   const Trace trace = read_every_way(t.text());
#pragma once

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/temp_fixture.h"
#include "formats/gzip_text.h"
#include "model/trace_compare_fixture.h"
#include "read/reader.h"

namespace stepscope::read {

// What a valid TraceText holds.
inline constexpr std::uint64_t kEvents = 151, kSlices = 83, kFlows = 40, kMemory = 20, kCounters = 3;
// Of its events, these are slices ("X").
inline constexpr std::size_t kOp = 39, kRuntime = 40, kKernel = 42;

struct TraceText {
  std::string head =
      "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\"id\": 0, \"name\": \"GPU\", \"numSms\": 132}\n  "
      "],\n"
      "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8},\n  \"traceEvents\": [\n";
  std::vector<std::string> events;
  std::string comma = ",\n";
  std::string tail = "\n  ],\n  \"traceName\": \"t.json\"\n}\n";

  TraceText() {
    events = {R"(  {"ph": "M", "ts": 0, "pid": 7, "tid": 0, "name": "process_name", "args": {"name": "python"}})",
              R"(  {"ph": "M", "ts": 0, "pid": 7, "tid": 9, "name": "thread_name", "args": {"name": "main"}})",
              R"(  {"ph": "M", "ts": 0, "pid": 0, "tid": 5, "name": "thread_name", "args": {"name": "stream 5"}})",
              R"(  {"ph": "M", "ts": 0, "pid": 7, "tid": 9, "name": "thread_sort_index", "args": {"sort_index": 2}})"};
    for (int i = 0; i < 20; i++) {
      const std::string n = std::to_string(i), ts = std::to_string(1000000 + 100 * i);
      add(R"("ph": "X", "cat": "cpu_op", "name": "aten::op)" + n + R"(", "pid": 7, "tid": 9, "ts": )" + ts +
          R"(.125, "dur": 60.5, "args": {"External id": )" + n +
          R"(, "Input Dims": [[8, 64], [64]], "Input type": ["float", ""], "Concrete Inputs": ["", "[1, 1]"]})");
      add(R"("ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 9, "ts": )" + ts +
          R"(.500, "dur": 5, "args": {"cbid": 211, "correlation": )" + n + "}");
      add(R"("ph": "s", "id": )" + n + R"(, "pid": 7, "tid": 9, "ts": )" + ts +
          R"(.500, "cat": "ac2g", "name": "ac2g")");
      add(R"("ph": "X", "cat": "kernel", "name": "gemm<float, {)" + n + R"(}, \"a\\b\">", "pid": 0, "tid": 5, "ts": )" +
          ts + R"(.750, "dur": 20.001, "args": {"device": 0, "stream": 5, "correlation": )" + n +
          R"(, "grid": [4, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 50})");
      add(R"("ph": "f", "id": )" + n + R"(, "pid": 0, "tid": 5, "ts": )" + ts +
          R"(.750, "cat": "ac2g", "name": "ac2g", "bp": "e")");
      add(R"("ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 9, "ts": )" + ts +
          R"(.900, "args": {"Bytes": -512, "Addr": 140737, "Device Type": 1, "Device Id": 0, "Total Allocated": 1024})");
      add(R"("ph": "X", "cat": "user_annotation", "name": "part )" + n + R"(", "pid": 7, "tid": 9, "ts": )" + ts +
          R"(.000, "dur": 90)");
    }
    for (int i = 0; i < 3; i++) {
      add(R"("ph": "B", "cat": "cpu_op", "name": "pair", "pid": 7, "tid": 9, "ts": )" +
          std::to_string(1010000 + 10 * i));
      add(R"("ph": "E", "pid": 7, "tid": 9, "ts": )" + std::to_string(1010005 + 10 * i));
    }
    add(R"("ph": "C", "name": "load", "pid": 7, "tid": 9, "ts": 1020000, "args": {"a": 1, "b": 2.5, "c": -3e2})");
  }
  // `members` without braces, laid out as Kineto does it.
  void add(const std::string& members) { events.push_back("  {\n    " + members + "\n  }"); }

  std::string text() const {
    std::string all = head;
    for (std::size_t i = 0; i < events.size(); i++) all += (i > 0 ? comma : "") + events[i];
    return all + tail;
  }
  // Where event `i` starts in text(): the place of its '{'.
  std::uint64_t offset(std::size_t i) const {
    std::uint64_t at = head.size();
    for (std::size_t k = 0; k < i; k++) at += events[k].size() + comma.size();
    return at + events[i].find('{');
  }
};

inline Result<Trace> read_path(const std::string& path, const ReadOptions& options = {}) {
  Result<std::vector<Trace>> traces = reader_named("chrome_trace")->read(path, options);
  if (!traces) return fail(traces.error());
  return std::move(traces->front());
}

inline Result<Trace> read_bytes(std::string_view bytes, const ReadOptions& options = {}) {
  const TempFile file(bytes);
  return read_path(file.path(), options);
}

// Reads the text on both paths, in chunks of many sizes, with one thread and more, plain and packed. All must agree,
// on what was damaged too; gives one of them.
inline Trace read_every_way(const std::string& text) {
  const TempFile plain(text), packed(formats::gzip(text), "trace.json.gz");
  Result<Trace> first = read_path(plain.path(), {});
  REQUIRE_MESSAGE(first, (first ? "" : to_text(first.error())));
  for (const std::size_t chunk : {1000, 1777, 4096, 20000, 512 << 10}) {
    for (const unsigned threads : {1u, 3u}) {
      for (const bool tolerant : {false, true}) {
        for (const std::string& path : {plain.path(), packed.path()}) {
          const Result<Trace> other = read_path(path, {threads, tolerant, 0, chunk});
          REQUIRE(other);
          CAPTURE(chunk);
          CAPTURE(threads);
          CAPTURE(tolerant);
          CAPTURE(path);
          CHECK(first_difference(*first, *other) == "");
        }
      }
    }
  }
  return *std::move(first);
}

// "code severity count @offset" of each issue, in the order of the trace.
inline std::string issue_list(const Trace& trace) {
  std::string list;
  for (const Issue& issue : trace.issues) {
    list += (list.empty() ? "" : ", ") + issue.code + " " + std::string(to_string(issue.severity)) + " " +
            std::to_string(issue.count) + (issue.offset ? " @" + std::to_string(*issue.offset) : "");
  }
  return list;
}

inline std::string at(std::uint64_t offset) { return " @" + std::to_string(offset); }

// Is there a slice with this name, and what are its numbers?
inline std::optional<SliceId> find_slice(const Trace& trace, std::string_view name) {
  for (std::size_t i = 0; i < trace.slices.size(); i++) {
    if (trace.name(static_cast<SliceId>(i)) == name) return static_cast<SliceId>(i);
  }
  return std::nullopt;
}

}  // namespace stepscope::read
