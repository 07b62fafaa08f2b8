// Derive on real traces: figures that other tools were measured on, and what must hold for every trace.
// Needs the traces of other projects ($STEPSCOPE_CORPUS, else ../shared/data); skipped with a message without them.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "session/run_fixture.h"

namespace stepscope {
namespace {

using namespace corpus_fixture;

using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;

Spans work_of(const Trace& trace, std::initializer_list<DeviceClass> classes) {
  Spans spans;
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    const SliceId id = trace.device.slice[row];
    const auto own = static_cast<DeviceClass>(trace.device.device_class[row]);
    const bool wanted = classes.size() == 0 || std::find(classes.begin(), classes.end(), own) != classes.end();
    if (is_device_work(trace.kind(id)) && wanted) spans.push_back({trace.slices.start_ns[id], trace.slices.end_ns(id)});
  }
  return spans;
}

Spans merged(Spans spans) {
  std::sort(spans.begin(), spans.end());
  Spans out;
  for (const auto& [start, end] : spans) {
    if (!out.empty() && start <= out.back().second) {
      out.back().second = std::max(out.back().second, end);
    } else {
      out.push_back({start, end});
    }
  }
  return out;
}

std::int64_t length(const Spans& spans) {
  std::int64_t total = 0;
  for (const auto& [start, end] : spans) total += end - start;
  return total;
}

std::int64_t union_ns(const Trace& trace, std::initializer_list<DeviceClass> classes = {}) {
  return length(merged(work_of(trace, classes)));
}

std::int64_t span_ns(const Trace& trace) {
  const Spans all = merged(work_of(trace, {}));
  return all.back().second - all.front().first;
}

// length(A) + length(B) - length(A or B)
std::int64_t hidden_ns(const Trace& trace) {
  const auto comm = DeviceClass::communication, compute = DeviceClass::compute;
  return union_ns(trace, {comm}) + union_ns(trace, {compute}) - union_ns(trace, {comm, compute});
}

TEST_CASE("corpus: expert-parallel communication of DeepSeek's training trace") {
  if (!has_corpus()) return;
  const Run run = opened(corpus() / "deepseek/train.json");
  const Trace& trace = run.traces.at(0);
  CHECK(span_ns(trace) == 129'012'000);
  CHECK(union_ns(trace, {DeviceClass::communication}) == 113'440'000);
  CHECK(union_ns(trace, {DeviceClass::communication}) - hidden_ns(trace) == 4'190'000);
  CHECK(static_cast<double>(hidden_ns(trace)) / 113'440'000 == doctest::Approx(0.963).epsilon(0.0005));
  std::map<std::string, std::int64_t> by_family;
  std::int64_t all = 0, known = 0;
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    const SliceId id = trace.device.slice[row];
    const ClassRule& rule = trace.class_rules[trace.device.rule[row]];
    all += trace.slices.dur_ns[id];
    if (trace.device.rule[row] != 0) known += trace.slices.dur_ns[id];
    by_family[rule.family] += trace.slices.dur_ns[id];
  }
  CHECK(static_cast<double>(known) >= 0.9 * static_cast<double>(all));
  for (const char* family :
       {"MoE dispatch", "MoE combine", "grouped GEMM", "GEMM", "attention", "norm", "elementwise", "reduction", "copy"})
    CHECK_MESSAGE(by_family[family] > 0, family);
  CHECK(trace.links.device_unlinked == 0);
  CHECK(trace.steps.size() == 1);
}

TEST_CASE("corpus: exact sums") {
  if (!has_corpus()) return;
  const Run ns = opened(corpus() / "hta/ns_resolution_trace");
  CHECK(length(work_of(ns.traces.at(0), {})) == 472'454'441);
  CHECK(work_of(ns.traces.at(0), {}).size() == 6095);
  const Run diff = opened(corpus() / "hta/trace_diff/test/test.json.gz");
  const Trace& trace = diff.traces.at(0);
  CHECK(span_ns(trace) == 745'239'000);
  CHECK(union_ns(trace) == 717'943'000);
  CHECK(span_ns(trace) - union_ns(trace) == 27'296'000);
  CHECK(union_ns(trace, {DeviceClass::communication}) == 251'341'000);
}

void check_invariants(const Trace& trace) {
  const Slices& s = trace.slices;
  REQUIRE(trace.by_track.size() == s.size());
  for (std::size_t row = 0; row < s.size(); row++) {
    const SliceId id = static_cast<SliceId>(row), parent = s.parent[id];
    if (parent == SliceId::none) continue;
    if (s.track[parent] != s.track[id] || s.start_ns[parent] > s.start_ns[id] || s.end_ns(parent) < s.end_ns(id) ||
        s.depth[id] != s.depth[parent] + 1)
      FAIL("slice ", row, " does not lie in its parent");
  }
  std::uint64_t work = 0;
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    const SliceId launch = trace.device.launch[row];
    work += is_device_work(trace.kind(trace.device.slice[row]));
    if (launch != SliceId::none) CHECK(!trace.tracks[static_cast<std::size_t>(s.track[launch])].device);
    CHECK(trace.device.rule[row] < trace.class_rules.size());
  }
  CHECK(work == trace.links.device_linked + trace.links.device_unlinked);
  CHECK(!trace.step_source.empty());
  for (std::size_t i = 0; i < trace.steps.size(); i++) {
    CHECK(trace.steps[i].device_end_ns >= trace.steps[i].end_ns);
    if (i > 0) CHECK(trace.steps[i].start_ns >= trace.steps[i - 1].start_ns);
  }
  for (const Backward& pair : trace.backward) {
    CHECK(pair.forward != pair.backward);
    CHECK(s.start_ns[pair.forward] <= s.start_ns[pair.backward]);
  }
}

TEST_CASE("corpus: what holds for every trace") {
  if (!has_corpus()) return;
  // What no rule can tell from the name: whole sub-models that MTIA runs under the name of their stage.
  const std::map<std::string, double> known_gaps{{"mtia_inference_rank_0.json.gz", 0.70}};
  int traces = 0;
  for (const auto& entry : fs::recursive_directory_iterator(corpus() / "hta")) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.find("json") == name.npos || name.find("_et.") != name.npos) continue;
    CAPTURE(name);
    const Run run = opened(entry.path());
    const Trace& trace = run.traces.at(0);
    check_invariants(trace);
    traces++;
    const auto gap = known_gaps.find(name);
    const std::int64_t unknown = length(work_of(trace, {DeviceClass::unclassified}));
    const std::int64_t all = length(work_of(trace, {}));
    CHECK(static_cast<double>(unknown) <= (gap == known_gaps.end() ? 0.001 : gap->second) * static_cast<double>(all));
  }
  CHECK(traces >= 28);
}

}  // namespace
}  // namespace stepscope
