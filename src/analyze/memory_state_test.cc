// The answer memory_state: its trees, what adds up to what, and what it concludes only on evidence.
#include <algorithm>

#include "analyze/answer_fixture.h"

namespace stepscope::analyze {
namespace {

using namespace answer_fixture;

constexpr std::int64_t kMiB = 1 << 20;

// Modules a and b, with a parameter each.
MemoryState measured(std::int64_t rank = 0) {
  MemoryState state;
  state.rank = rank;
  state.world_size = 4;
  state.complete = true;
  state.allocator_reason = "n/a: the model is on the CPU";
  state.nodes = {{"", "Net", 0, 0}, {"a", "Linear", 0, 1}, {"a.weight", "", 1, 2}, {"b", "ReLU", 0, 1}};
  return state;
}

MemoryTree tree(MemoryCategory category, std::vector<MemoryTreeRow> rows) { return {category, std::move(rows)}; }

MemoryLayout layout(std::string event, std::vector<MemoryTree> trees) {
  return {{.step = 1, .micro_batch = 0, .event = std::move(event), .unix_ns = {}}, std::move(trees)};
}

MemoryTree parameters(std::int64_t bytes) {
  return tree(MemoryCategory::parameter, {{0, 0, bytes}, {1, 0, bytes}, {2, bytes, bytes}});
}

MemoryTree activations(std::int64_t in_a, std::int64_t in_b) {
  return tree(MemoryCategory::activation, {{0, 0, in_a + in_b}, {1, in_a, in_a}, {3, in_b, in_b}});
}

MemoryPoint point(std::string event, std::int64_t step, std::int64_t gradient, std::int64_t activation) {
  MemoryPoint out;
  out.moment = {.step = step, .micro_batch = 0, .event = std::move(event), .unix_ns = step + 1};
  out.bytes[static_cast<std::size_t>(MemoryCategory::gradient)] = gradient;
  out.bytes[static_cast<std::size_t>(MemoryCategory::activation)] = activation;
  return out;
}

Answer asked(std::vector<MemoryState> states) {
  Run run;
  run.memory_states = std::move(states);
  return ask(run, "memory_state");
}

std::string findings_of(const Answer& answer) {
  std::string all;
  for (const Finding& finding : answer.findings) {
    CHECK_FALSE(finding.evidence.empty());
    CHECK(finding.next);
    all += finding.id + " ";
  }
  return all;
}

}  // namespace

TEST_CASE("memory_state: nothing measured, and how to") {
  const Answer answer = asked({});
  CHECK(unknown(answer, "peak_bytes"));
  CHECK(unknown(answer, "reserved_bytes"));
  CHECK(answer.scalar("peak_bytes")->meaning.find("--memory") != std::string::npos);
  CHECK(answer.findings.empty());
}

TEST_CASE("memory_state: categories and trees of the peak, larger ones first") {
  MemoryState state = measured();
  state.peak = layout("backward", {parameters(30), activations(10, 60)});
  state.step_ends = {layout("step", {parameters(30)})};
  state.largest = {layout("forward", {activations(20, 60)})};
  const Answer answer = asked({state});
  CHECK(ns(answer, "peak_bytes") == 100);
  CHECK(ns(answer, "peak_activation_bytes") == 70);
  CHECK(ns(answer, "peak_gradient_bytes") == 0);
  CHECK(cell(answer, "categories", "category", "activation", "share") == Value(0.7));
  const Table& peak = *answer.table("at_peak");
  REQUIRE(peak.rows.size() == 6);
  CHECK(peak.rows[3][5] == Value(std::string("(all)")));
  CHECK(peak.rows[4][5] == Value(std::string("b")));  // before a, which has less
  CHECK(peak.rows[4][10] == Value(std::string("(all)")));
  CHECK(peak.rows[5][5] == Value(std::string("a")));
  CHECK(cell(answer, "at_peak", "path", "a.weight", "total_bytes") == Value(std::int64_t{30}));
  CHECK(cell(answer, "largest", "path", "a", "own_bytes") == Value(std::int64_t{20}));
  CHECK(answer.table("at_end")->rows.size() == 3);
  CHECK(unknown(answer, "reserved_bytes"));
  CHECK(answer.scalar("reserved_bytes")->meaning == "n/a: the model is on the CPU");
}

TEST_CASE("memory_state: the same word is the same bytes in the figures and by step") {
  MemoryState state = measured();
  state.peak = layout("backward", {activations(10, 60), tree(MemoryCategory::input, {{0, 5, 5}})});
  state.step_peaks = {*state.peak};
  state.step_ends = {layout("step", {parameters(30)})};
  const Answer answer = asked({state});
  CHECK(ns(answer, "peak_activation_bytes") == 70);
  CHECK(ns(answer, "peak_input_bytes") == 5);
  CHECK(answer.table("steps")->rows.size() == 1);
  CHECK(cell(answer, "steps", "peak_event", "backward", "peak_activation_bytes") == Value(std::int64_t{70}));
  CHECK(cell(answer, "steps", "peak_event", "backward", "peak_bytes") == Value(std::int64_t{75}));
}

TEST_CASE("memory_state: the allocator's figures add up to the device") {
  MemoryState state = measured();
  state.device = "cuda:0";
  state.peak = layout("backward", {parameters(500)});
  MemoryPoint one = point("forward", 0, 0, 0);
  one.bytes[0] = 600;
  one.devices = {{"cuda:0", {500}}, {"cpu", {100}}};
  one.allocator = AllocatorFigures{.allocated_bytes = 700,
                                   .requested_bytes = 650,
                                   .rounding_bytes = 50,
                                   .reserved_bytes = 1000,
                                   .inactive_split_bytes = 120,
                                   .device_used_bytes = 1800,
                                   .device_total_bytes = 9000,
                                   .non_torch_bytes = 800};
  state.points = {one};
  const Answer answer = asked({state});
  const auto number = [&](const char* column) {
    return std::get<std::int64_t>(cell(answer, "allocator", "moment", "most", column));
  };
  CHECK(number("categories_bytes") == 500);
  CHECK(number("other_bytes") == 150);
  CHECK(number("categories_bytes") + number("other_bytes") == number("requested_bytes"));
  CHECK(number("requested_bytes") + number("rounding_bytes") == number("allocated_bytes"));
  CHECK(number("allocated_bytes") + number("inactive_split_bytes") + number("free_bytes") == number("reserved_bytes"));
  CHECK(number("reserved_bytes") + number("non_torch_bytes") == number("device_used_bytes"));
  CHECK(ns(answer, "non_torch_bytes") == 800);
  CHECK(unknown(answer, "workspace_bytes"));
  CHECK(cell(answer, "devices", "device", "cpu", "bytes") == Value(std::int64_t{100}));
}

TEST_CASE("memory_state: findings, and none where nothing is to be found") {
  MemoryState state = measured();
  state.peak = layout("backward", {parameters(40 * kMiB), activations(10 * kMiB, 50 * kMiB)});
  state.points = {point("forward", 0, 0, 60 * kMiB), point("step", 0, 40 * kMiB, 0), point("forward", 1, 0, 60 * kMiB)};
  Answer answer = asked({state});
  CHECK(findings_of(answer) == "memory_activations ");
  CHECK(answer.findings[0].where.module == "b");

  state.peak =
      layout("step", {parameters(20 * kMiB), tree(MemoryCategory::optimizer_state, {{0, 50 * kMiB, 50 * kMiB}})});
  CHECK(findings_of(asked({state})) == "memory_optimizer_state ");

  for (const std::int64_t half : {40, 50}) {  // "most" is more than half
    state.peak = layout("backward", {parameters((100 - half) * kMiB), activations(half * kMiB, 0)});
    CHECK(findings_of(asked({state})).empty());
    state.peak = layout("step", {parameters((100 - half) * kMiB),
                                 tree(MemoryCategory::optimizer_state, {{0, half * kMiB, half * kMiB}})});
    CHECK(findings_of(asked({state})).empty());
  }

  state.peak = layout("forward", {parameters(60 * kMiB), activations(0, 20 * kMiB)});
  state.points[2] = point("forward", 1, 40 * kMiB, 20 * kMiB);
  CHECK(findings_of(asked({state})) == "memory_old_gradients ");

  state.points[2] = point("step", 1, 0, 20 * kMiB);
  CHECK(findings_of(asked({state})) == "memory_kept_graph ");

  state.points.clear();
  CHECK(findings_of(asked({state})).empty());
  state.peak = layout("backward", {parameters(40), activations(10, 50)});  // bytes: too little to matter
  CHECK(findings_of(asked({state})).empty());
}

TEST_CASE("memory_state: a rank that needs more than the others") {
  std::vector<MemoryState> states;
  for (int rank = 0; rank < 4; rank++) {
    states.push_back(measured(rank));
    states.back().peak = layout("step", {parameters((rank == 2 ? 140 : 100) * kMiB)});
  }
  const Answer answer = asked(states);
  CHECK(findings_of(answer) == "memory_rank_outlier ");
  CHECK(answer.findings[0].where.rank == 2);
  states.resize(2);
  CHECK(findings_of(asked(states)).empty());  // of two nobody can be told apart
}

TEST_CASE("memory_state: large trees keep their larger rows, and many ranks those with most") {
  MemoryState state = measured();
  MemoryTree big = tree(MemoryCategory::parameter, {{0, 0, 0}});
  for (std::uint32_t i = 1; i <= 6000; i++) {
    state.nodes.push_back({"n" + std::to_string(i), "", 0, 1});
    big.rows.push_back({static_cast<std::uint32_t>(state.nodes.size() - 1), i, i});
    big.rows.front().total_bytes += i;
  }
  state.peak = layout("step", {big});
  Answer answer = asked({state});
  const Table& peak = *answer.table("at_peak");
  CHECK(peak.rows.size() <= 4000);
  CHECK(peak.rows.size() > 3990);
  CHECK(peak.rows[0][5] == Value(std::string("(all)")));
  CHECK(peak.rows[1][5] == Value(std::string("n6000")));
  CHECK(answer.notes.front().find("2001 smaller ones") != std::string::npos);

  std::vector<MemoryState> states;
  for (int rank = 0; rank < 20; rank++) {
    states.push_back(measured(rank));
    states.back().peak = layout("step", {parameters(100 + rank)});
  }
  answer = asked(states);
  CHECK(answer.table("at_peak")->rows.size() == 8 * 3);
  CHECK(answer.table("at_peak")->rows[0][0] == Value(std::int64_t{12}));
  CHECK(answer.table("categories")->rows.size() == 20);
}

}  // namespace stepscope::analyze
