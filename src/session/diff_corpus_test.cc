// The difference on real traces: the pairs of other projects, a run against itself, and 200 pairs made from recorded
// steps. Needs the traces of other projects ($STEPSCOPE_CORPUS, else ../shared/data); skipped with a message without.
#include <doctest/doctest.h>

#include "diff/diff.h"
#include "diff/resampled_fixture.h"
#include "model/op_calls.h"
#include "session/run_fixture.h"

namespace stepscope {
namespace {

using namespace corpus_fixture;

diff::Difference difference(const Run& a, const Run& b, std::string_view gate = "step>3%") {
  Result<diff::Difference> found = diff::diff(a, b, {.levels = {}, .gates = {*diff::parse_gate(gate)}});
  REQUIRE(found);
  return *std::move(found);
}

Value value(const diff::Difference& found, std::string_view scalar) {
  const Scalar* known = found.answer.scalar(scalar);
  REQUIRE_MESSAGE(known != nullptr, scalar);
  return known->value;
}

double real(const diff::Difference& found, std::string_view scalar) {
  const Value known = value(found, scalar);
  REQUIRE_MESSAGE(std::holds_alternative<double>(known), scalar);
  return std::get<double>(known);
}

// Does the table have a significant row with this name?
bool significant(const diff::Difference& found, std::string_view table_name, std::string_view name) {
  const Table& table = *found.answer.table(table_name);
  REQUIRE(table.columns[7].name == "significant");
  for (const auto& row : table.rows) {
    if (row.front() == Value(std::string(name)) && row[7] == Value(true)) return true;
  }
  return false;
}

// The classes of the waterfall add up to the change of the step that it explains.
void check_adds_up(const diff::Difference& found) {
  const Table& table = *found.answer.table("waterfall");
  double sum = 0;
  for (const auto& row : table.rows) {
    if (row[0] == Value(std::string("class")) && std::holds_alternative<double>(row[7]))
      sum += std::get<double>(row[7]);
  }
  if (!table.rows.empty() && std::holds_alternative<double>(table.rows[0][7])) CHECK(sum == doctest::Approx(1));
}

TEST_CASE("corpus: the difference of HTA's pair is found, explained, and seen by the gate") {
  if (!has_corpus()) return;
  const Run control = opened(corpus() / "hta/trace_diff/control"), test = opened(corpus() / "hta/trace_diff/test");
  const diff::Difference found = difference(control, test);
  CHECK(value(found, "step_significant") == Value(true));
  CHECK(real(found, "step_change") > 0.4);
  CHECK(real(found, "attributed_share") >= 0.9);
  CHECK(found.gates.front().failed == true);
  CHECK(significant(found, "phases", "backward"));
  check_adds_up(found);
  const diff::Difference back = difference(test, control);
  CHECK(back.gates.front().failed == false);
  CHECK(value(back, "step_significant") == Value(true));
}

// Cut to 300 ms with one whole step a rank: what changed is shown, that it is no noise cannot be.
TEST_CASE("corpus: the difference of two nsys exports, before and after a change") {
  if (!has_corpus()) return;
  const Run before = opened(corpus() / "nsys/mfu_2gpu_before.sqlite"),
            after = opened(corpus() / "nsys/mfu_2gpu_after.sqlite");
  const diff::Difference found = difference(before, after);
  CHECK(value(found, "step_significant") == Value());
  CHECK_FALSE(found.gates.front().failed);
  check_adds_up(found);
  const Table& kernels = *found.answer.table("kernels");
  CHECK(std::get<Ns>(cell(kernels, "void flash::flash_fwd", "delta_ns")) < -5'000'000);
  CHECK(std::get<Ns>(cell(kernels, "ncclDevKernel_SendRecv", "delta_ns")) > 2'000'000);
  CHECK(cell(kernels, "ncclDevKernel_SendRecv", "match") == Value(std::string("same")));
}

TEST_CASE("corpus: a run does not differ from itself") {
  if (!has_corpus()) return;
  for (const std::string path : {"hta/trace_diff/control", "hta/ns_resolution_trace", "hta/df_index_resolver",
                                 "hta/nccl_parser_config", "param_et/linear_kineto.json.gz"}) {
    const Run run = opened(corpus() / path);
    const diff::Difference found = difference(run, run);
    CAPTURE(path);
    CHECK(value(found, "step_significant") == Value(false));
    CHECK(value(found, "rows_changed") == Value(Ns{0}));
    CHECK(value(found, "step_delta_ns") == Value(Ns{0}));
    CHECK(found.gates.front().failed == false);
    for (const Table& table : found.answer.tables) {
      for (const auto& row : table.rows) REQUIRE(row.size() == table.columns.size());
    }
  }
}

TEST_CASE("corpus: with fewer than three steps it says that it cannot tell") {
  if (!has_corpus()) return;
  const Run run = opened(corpus() / "deepseek/train.json");
  const diff::Difference found = difference(run, run);
  CHECK_FALSE(found.gates.front().failed);
  CHECK(value(found, "step_significant") == Value());
  CHECK(value(found, "step_a_ns") != Value());
}

// The operator with most host time of its own in the recording.
std::string heaviest_op(const Trace& trace) {
  const OpCalls calls = op_calls(trace);
  const std::vector<OpTotal> totals = op_totals(trace, calls, keys_by_name(trace, calls));
  const auto most = std::max_element(
      totals.begin(), totals.end(), [](const OpTotal& a, const OpTotal& b) { return a.host_self_ns < b.host_self_ns; });
  return std::string(trace.name(calls.slice[most->example]));
}

struct Tally {
  int slowed = 0, found = 0, by_op = 0, attributed = 0;
  int equal = 0, alarms = 0, alarms_of_rows = 0;
};

// Does the difference say that the step grew by about 5 %, that `op` did it, and what the growth consists of?
void try_slowed(const Run& base, const Run& slow, const std::string& op, Tally& tally) {
  const diff::Difference found = difference(base, slow);
  tally.slowed++;
  tally.found += value(found, "step_significant") == Value(true) && found.gates.front().failed == true ? 1 : 0;
  tally.by_op += significant(found, "operators", op) ? 1 : 0;
  const Value share = value(found, "attributed_share");
  tally.attributed += std::holds_alternative<double>(share) && std::get<double>(share) >= 0.9 ? 1 : 0;
  CHECK(real(found, "step_change") == doctest::Approx(0.05).epsilon(0.6));
  check_adds_up(found);
}

void try_equal(const Run& base, const Run& again, Tally& tally) {
  const diff::Difference found = difference(base, again);
  tally.equal++;
  tally.alarms += value(found, "step_significant") == Value(true) || found.gates.front().failed != false ? 1 : 0;
  tally.alarms_of_rows += value(found, "rows_changed") != Value(Ns{0}) ? 1 : 0;
}

TEST_CASE("corpus: 200 pairs made from recorded steps: 5 % more is found, and by its operator; none is no alarm") {
  if (!has_corpus()) return;
  Tally tally;
  for (const char* path : {"hta/timeline_analysis/sampled_rank-0.json.gz", "hta/trace_filter/sampled_rank-1.json.gz"}) {
    const Run recorded = opened(corpus() / path);
    const diff::Resampler steps(recorded.traces.front());
    const std::string op = heaviest_op(recorded.traces.front());
    CAPTURE(op);
    REQUIRE(steps.steps() == 2);
    for (std::uint64_t seed = 0; seed < 50; seed++) {
      const std::size_t step = seed % 2;
      const auto length = static_cast<double>(steps.length_of(step)),
                 part = static_cast<double>(steps.time_of(op, step));
      REQUIRE(part > 0.15 * length);
      const Run base = steps.run({.seed = seed * 4, .only = step});
      const Run slow = steps.run({.seed = seed * 4 + 1, .only = step, .slowed = op, .slowdown = 0.05 * length / part});
      try_slowed(base, slow, op, tally);
      if (seed % 2 == 0) {
        try_equal(base, steps.run({.seed = seed * 4 + 2, .only = step}), tally);
      } else {  // all recorded steps mixed: two kinds of length in one run
        try_equal(steps.run({.seed = seed * 4 + 2}), steps.run({.seed = seed * 4 + 3}), tally);
      }
    }
  }
  CHECK(tally.slowed == 100);
  CHECK(tally.found == 100);
  CHECK(tally.by_op == 100);
  CHECK(tally.attributed == 100);
  CHECK(tally.equal == 100);
  CHECK(tally.alarms == 0);
  CHECK(tally.alarms_of_rows <= 5);  // one in twenty is what a false-discovery rate of 5 % may give
}

}  // namespace
}  // namespace stepscope
