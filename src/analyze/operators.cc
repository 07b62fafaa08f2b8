// operators: what each operator costs on the host and on the device, by name, by name and shape, by call stack.
//
// See model/op_calls.h for the exact definitions. The call stack is the one recorded with the operator where there is
// one, else the Python frames around it.
#include <algorithm>

#include "analyze/analysis.h"
#include "base/key_index.h"
#include "model/answer_parts.h"
#include "model/op_calls.h"

namespace stepscope::analyze {
namespace {

constexpr std::size_t kMaxFrames = 12;  // of a stack, innermost first; deeper ones say nothing about the operator

struct RankOps {
  const Trace* trace;
  OpCalls calls;
};

using Keys = std::vector<std::uint64_t>;

std::uint64_t pack(StringId name, std::uint32_t second) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(name)) << 32 | second;
}

StringId name_of_key(std::uint64_t key) { return static_cast<StringId>(key >> 32); }
StringId text_of_key(std::uint64_t key) { return static_cast<StringId>(key & 0xffffffff); }

Keys keys_by_text(const RankOps& rank, const OptionalColumn<StringId>& texts) {
  Keys keys(rank.calls.size());
  for (std::size_t op = 0; op < keys.size(); op++) {
    const std::uint32_t row = rank.calls.row[op];
    const StringId second = row == OpCalls::none ? StringId::none : texts[row];
    keys[op] = pack(rank.trace->slices.name[rank.calls.slice[op]], static_cast<std::uint32_t>(second));
  }
  return keys;
}

bool any(const OptionalColumn<StringId>& texts) {
  for (std::size_t row = 0; row < texts.size(); row++) {
    if (texts[row] != StringId::none) return true;
  }
  return false;
}

// Python frames as a tree: a node is (node of the caller, name of the frame).
struct Frames {
  static constexpr std::uint32_t kRoot = 0xffffffff;
  KeyIndex nodes;
  std::vector<std::uint32_t> at;  // per slice: node of the innermost frame at or above it; empty: no frames recorded

  std::string text(const Trace& trace, std::uint32_t node) const {
    std::string out;
    for (std::size_t i = 0; i < kMaxFrames && node != kRoot; i++) {
      if (i > 0) out += "; ";
      out += trace.strings[text_of_key(nodes.key(node))];
      node = static_cast<std::uint32_t>(nodes.key(node) >> 32);
    }
    if (node != kRoot) out += "; …";
    return out;
  }
};

Frames python_frames(const Trace& trace) {
  Frames frames;
  const bool recorded = std::any_of(trace.categories.begin(), trace.categories.end(),
                                    [](const Category& c) { return c.kind == SliceKind::python_function; });
  if (!recorded) return frames;
  frames.at.assign(trace.slices.size(), Frames::kRoot);
  for (const SliceId id : trace.by_track) {
    const SliceId above = trace.slices.parent[id];
    std::uint32_t node = above == SliceId::none ? Frames::kRoot : frames.at[static_cast<std::size_t>(above)];
    if (trace.kind(id) == SliceKind::python_function) {
      const auto name = static_cast<std::uint32_t>(trace.slices.name[id]);
      node = frames.nodes[static_cast<std::uint64_t>(node) << 32 | name];
    }
    frames.at[static_cast<std::size_t>(id)] = node;
  }
  return frames;
}

std::vector<TableColumn> cost_columns() {
  return {{"calls", ValueType::integer, Unit::count, "How often it ran"},
          {"host_self_ns", ValueType::integer, Unit::ns,
           "Host time without what it called (operators, runtime calls, ranges)"},
          {"host_total_ns", ValueType::integer, Unit::ns,
           "Host time with what it called; a call inside another of the same row counts once"},
          {"device_self_ns", ValueType::integer, Unit::ns, "Time in which device work that it launched itself ran"},
          {"device_total_ns", ValueType::integer, Unit::ns,
           "Time in which device work launched by it or by what it called ran"},
          {"self_allocated_bytes", ValueType::integer, Unit::bytes,
           "Bytes it allocated itself, on host and devices, frees not subtracted; unknown without memory events"},
          {"total_allocated_bytes", ValueType::integer, Unit::bytes, "The same with what it called"}};
}

void append_costs(std::vector<Value>& row, const OpTotal& total, const RankOps& rank) {
  const bool host_only = rank.trace->device.size() == 0;
  const bool bytes = !rank.calls.self_bytes.empty();
  const auto known = [](bool is, std::int64_t value) { return is ? Value(value) : Value(); };
  row.insert(row.end(), {count(total.calls), total.host_self_ns, total.host_total_ns,
                         known(!host_only, total.device_self_ns), known(!host_only, total.device_total_ns),
                         known(bytes, total.self_bytes), known(bytes, total.total_bytes)});
}

// One table of the totals of all ranks; `lead` gives the cells after the rank.
template <class Lead>
Table cost_table(std::string name, std::vector<TableColumn> lead_columns, const std::vector<RankOps>& ranks,
                 const std::vector<Keys>& keys, std::size_t max_rows, Answer& answer, const Lead& lead) {
  Table table{.name = std::move(name), .columns = {{"rank", ValueType::integer, Unit::none, "Rank"}}};
  table.columns.insert(table.columns.end(), lead_columns.begin(), lead_columns.end());
  const auto costs = cost_columns();
  table.columns.insert(table.columns.end(), costs.begin(), costs.end());
  struct Found {
    std::size_t rank;
    OpTotal total;
  };
  std::vector<Found> found;
  for (std::size_t rank = 0; rank < ranks.size(); rank++) {
    for (const OpTotal& total : op_totals(*ranks[rank].trace, ranks[rank].calls, keys[rank]))
      found.push_back({rank, total});
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::pair(a.total.device_self_ns, a.total.host_self_ns) >
           std::pair(b.total.device_self_ns, b.total.host_self_ns);
  });
  const std::size_t all = found.size();
  if (max_rows > 0 && all > max_rows) {
    found.resize(max_rows);
    answer.notes.push_back("Table " + table.name + " shows " + std::to_string(max_rows) + " of " + std::to_string(all) +
                           " rows; left out: those with less self time.");
  }
  for (const Found& one : found) {
    std::vector<Value> row{ranks[one.rank].trace->rank.rank};
    lead(row, one.rank, one.total.key);
    append_costs(row, one.total, ranks[one.rank]);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table by_name(const std::vector<RankOps>& ranks, std::size_t max_rows, Answer& answer) {
  std::vector<Keys> keys;
  for (const RankOps& rank : ranks) keys.push_back(keys_by_name(*rank.trace, rank.calls));
  return cost_table("by_name", {{"name", ValueType::text, Unit::none, "Operator"}}, ranks, keys, max_rows, answer,
                    [&](std::vector<Value>& row, std::size_t rank, std::uint64_t key) {
                      row.push_back(std::string(ranks[rank].trace->strings[static_cast<StringId>(key)]));
                    });
}

Table by_shape(const std::vector<RankOps>& ranks, std::size_t max_rows, Answer& answer) {
  std::vector<Keys> keys;
  for (const RankOps& rank : ranks) keys.push_back(keys_by_text(rank, rank.trace->ops.input_dims));
  return cost_table(
      "by_shape",
      {{"name", ValueType::text, Unit::none, "Operator"},
       {"shapes", ValueType::text, Unit::none, "Shapes of the inputs; unknown: not recorded for these calls"}},
      ranks, keys, max_rows, answer, [&](std::vector<Value>& row, std::size_t rank, std::uint64_t key) {
        const StringPool& strings = ranks[rank].trace->strings;
        row.push_back(std::string(strings[name_of_key(key)]));
        row.push_back(text(strings[text_of_key(key)]));
      });
}

Table by_stack(const std::vector<RankOps>& ranks, std::size_t max_rows, Answer& answer) {
  std::vector<Keys> keys;
  std::vector<Frames> frames;
  for (const RankOps& rank : ranks) {
    const bool recorded = any(rank.trace->ops.call_stack);
    frames.push_back(recorded ? Frames{} : python_frames(*rank.trace));
    keys.push_back(keys_by_text(rank, rank.trace->ops.call_stack));
    if (frames.back().at.empty()) continue;
    for (std::size_t op = 0; op < rank.calls.size(); op++) {
      const SliceId slice = rank.calls.slice[op];
      keys.back()[op] = pack(rank.trace->slices.name[slice], frames.back().at[static_cast<std::size_t>(slice)]);
    }
  }
  return cost_table("by_stack",
                    {{"name", ValueType::text, Unit::none, "Operator"},
                     {"stack", ValueType::text, Unit::none,
                      "Where it was called, innermost first; unknown: not recorded for these calls"}},
                    ranks, keys, max_rows, answer, [&](std::vector<Value>& row, std::size_t rank, std::uint64_t key) {
                      const StringPool& strings = ranks[rank].trace->strings;
                      const auto second = static_cast<std::uint32_t>(key & 0xffffffff);
                      row.push_back(std::string(strings[name_of_key(key)]));
                      if (frames[rank].at.empty()) {
                        row.push_back(text(strings[text_of_key(key)]));
                      } else {
                        row.push_back(text(frames[rank].text(*ranks[rank].trace, second)));
                      }
                    });
}

void add_scalars(Answer& answer, const std::vector<RankOps>& ranks) {
  std::int64_t calls = 0, self_ns = 0, bytes = 0, lost = 0;
  bool events = false;
  for (const RankOps& rank : ranks) {
    calls += static_cast<std::int64_t>(rank.calls.size());
    for (const std::int64_t self : rank.calls.host_self_ns) self_ns += self;
    for (const std::int64_t self : rank.calls.self_bytes) bytes += self;
    lost += static_cast<std::int64_t>(rank.calls.bytes_without_op);
    events = events || !rank.calls.self_bytes.empty();
  }
  constexpr std::string_view kNoMemory =
      "No memory events were recorded. Record them with profile_memory=True of torch.profiler.";
  add_scalar(answer, "call_count", calls, Unit::count, "Calls of operators, of all ranks");
  add_scalar(answer, "host_self_ns", self_ns, Unit::ns, "Host time inside operators, summed over threads and ranks");
  add_scalar(answer, "allocated_bytes", events ? Value(bytes) : Value(), Unit::bytes,
             events ? "Bytes allocated inside operators, frees not subtracted" : kNoMemory);
  add_scalar(answer, "allocated_without_op_bytes", events ? Value(lost) : Value(), Unit::bytes,
             events ? "Bytes allocated while the thread was in no operator" : kNoMemory);
}

void add_notes(Answer& answer, const std::vector<RankOps>& ranks, bool shapes, bool stacks) {
  const bool device =
      std::any_of(ranks.begin(), ranks.end(), [](const RankOps& r) { return r.trace->device.size() > 0; });
  const bool memory =
      std::any_of(ranks.begin(), ranks.end(), [](const RankOps& r) { return !r.calls.self_bytes.empty(); });
  if (!device) answer.notes.push_back(std::string(kNoDeviceWork) + " Operators are ordered by host self time.");
  if (!shapes)
    answer.notes.push_back("No shapes were recorded, so there is no table by_shape: record with record_shapes=True.");
  if (!stacks)
    answer.notes.push_back("No call stacks were recorded, so there is no table by_stack: record with with_stack=True.");
  if (!memory)
    answer.notes.push_back("No memory events were recorded, so bytes are unknown: record with profile_memory=True.");
}

Result<Answer> run_operators(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  std::vector<RankOps> ranks;
  for (const Trace& trace : run.traces) ranks.push_back({&trace, op_calls(trace)});
  add_scalars(answer, ranks);
  const auto have = [&](const auto& test) { return std::any_of(run.traces.begin(), run.traces.end(), test); };
  const bool shapes = have([](const Trace& t) { return any(t.ops.input_dims); });
  const bool stacks = have([](const Trace& t) {
    return any(t.ops.call_stack) || std::any_of(t.categories.begin(), t.categories.end(),
                                                [](const Category& c) { return c.kind == SliceKind::python_function; });
  });
  answer.tables.push_back(by_name(ranks, options.max_rows, answer));
  if (shapes) answer.tables.push_back(by_shape(ranks, options.max_rows, answer));
  if (stacks) answer.tables.push_back(by_stack(ranks, options.max_rows, answer));
  add_notes(answer, ranks, shapes, stacks);
  return answer;
}

}  // namespace

Analysis operators_analysis() {
  return {"operators", "Which operators cost time and memory, on the host and on the device?", run_operators};
}

}  // namespace stepscope::analyze
