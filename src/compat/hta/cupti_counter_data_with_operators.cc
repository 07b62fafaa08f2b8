// cupti_counter_data_with_operators: the hardware counters of CUPTI ranges, with the operators above the launches. The
// file does not link the two: the i-th range belongs to the i-th cudaLaunchKernel…, and there must be as many.
#include <algorithm>
#include <array>
#include <charconv>

#include "compat/compat.h"
#include "compat/hta/call_graph.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

// Columns that HTA's table has for every event; of a range they only hold defaults.
struct Constant {
  std::string_view name, value;
};
constexpr std::array<Constant, 18> kConstants{{{"bytes", "-1"},
                                               {"memory_bw_gbps", "0"},
                                               {"wait_on_stream", "-1"},
                                               {"wait_on_cuda_event_record_corr_id", "-1"},
                                               {"input_dims", "-1"},
                                               {"input_type", "-1"},
                                               {"input_strides", "-1"},
                                               {"external_id", "-1"},
                                               {"python_id", "-1"},
                                               {"python_parent_id", "-1"},
                                               {"collective_name", ""},
                                               {"in_msg_nelems", "0"},
                                               {"out_msg_nelems", "0"},
                                               {"msg_dtype", ""},
                                               {"group_size", "0"},
                                               {"process_rank", "-1"},
                                               {"in_split_size", "[]"},
                                               {"out_split_size", "[]"}}};

using Rows = std::vector<std::uint32_t>;

template <class Wanted>
Rows by_start_of(const EventTable& table, Wanted wanted) {
  Rows rows;
  std::vector<double> starts;
  for (std::uint32_t row = 0; row < table.rows().size(); row++) {
    if (!wanted(table.rows()[row])) continue;
    rows.push_back(row);
    starts.push_back(table.rows()[row].ts);
  }
  Rows sorted;
  for (const std::uint32_t at : sort_order(starts)) sorted.push_back(rows[at]);
  return sorted;
}

struct Ops {
  Value stack, top, bottom;
};

Ops ops_around(const EventTable& table, const CallGraph& graph, std::uint32_t launch) {
  Ops ops;
  std::string stack;
  for (const std::uint32_t row : graph.path_to(launch)) {
    if (table.category(table.rows()[row]) != "cpu_op") continue;
    const std::string name(table.name(table.rows()[row]));
    if (stack.empty()) ops.top = name;
    ops.bottom = name;
    stack += (stack.empty() ? "" : " | ") + name;
  }
  if (!stack.empty()) ops.stack = std::move(stack);
  return ops;
}

Value counter_value(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? Value(number) : Value(text);
}

struct Ranges {
  Rows rows, launches;
  std::vector<EventArguments> counters;
  std::vector<std::string> names;  // of all counters, in order of first use
};

Table columns_of(const std::vector<std::string>& counters) {
  Table out{.name = "cupti_counter_data_with_operators",
            .columns = {whole("rank", "Rank"), whole("index", "Event"), words("cat", "Category"),
                        words("name", "Kernel"), words("pid", "Process"), words("tid", "Thread"),
                        number("ts", "us since the earliest event of all ranks"), number("dur", "us"),
                        whole("stream", "-1: not given"), whole("correlation", "-1: not given")}};
  for (const Constant& constant : kConstants) out.columns.push_back(words(constant.name, "Not given for ranges"));
  for (const std::string& counter : counters) out.columns.push_back(number(counter, "Counter of the hardware"));
  for (const std::string_view name : {"index_correlation", "iteration"})
    out.columns.push_back(whole(name, "-1: not known"));
  out.columns.push_back(number("end", "us since the earliest event of all ranks"));
  out.columns.push_back(whole("depth", "Of the range in its thread"));
  out.columns.push_back(words("op_stack", "Operators around the launch, outermost first"));
  out.columns.push_back(words("top_level_op", "The outermost"));
  out.columns.push_back(words("bottom_level_op", "The innermost"));
  return out;
}

std::vector<Value> row_of(const EventTable& table, const CallGraph& graph, const Ranges& ranges, std::size_t i) {
  const Row& range = table.rows()[ranges.rows[i]];
  const Trace& trace = table.trace();
  const Track& track = trace.tracks[static_cast<std::size_t>(trace.slices.track[range.index])];
  std::vector<Value> row{table.rank(),
                         std::int64_t{range.index},
                         std::string(table.category(range)),
                         std::string(table.name(range)),
                         std::string(trace.strings[track.process]),
                         std::string(trace.strings[track.thread]),
                         range.ts,
                         range.dur,
                         range.stream,
                         range.correlation};
  for (const Constant& constant : kConstants) row.emplace_back(std::string(constant.value));
  for (const std::string& name : ranges.names) {
    const auto& all = ranges.counters[i];
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& counter) { return counter.first == name; });
    row.push_back(found == all.end() ? Value() : counter_value(found->second));
  }
  Ops ops = ops_around(table, graph, ranges.launches[i]);
  row.insert(row.end(), {range.index_correlation, range.iteration, range.end(), graph.depth(ranges.rows[i]),
                         std::move(ops.stack), std::move(ops.top), std::move(ops.bottom)});
  return row;
}

Result<Answer> run_cupti_counter_data_with_operators(const Input& input) {
  Answer answer;
  for (const EventTable& table : input.tables().ranks) {
    Ranges ranges;
    ranges.rows = by_start_of(table, [&](const Row& row) { return table.category(row) == "cuda_profiler_range"; });
    if (ranges.rows.empty()) continue;
    ranges.launches = by_start_of(table, [&](const Row& row) {
      return table.category(row).starts_with("cuda_runtime") && table.name(row).starts_with("cudaLaunchKernel");
    });
    if (ranges.launches.size() != ranges.rows.size()) {
      answer.notes.push_back("Rank " + std::to_string(table.rank()) + " has " + std::to_string(ranges.rows.size()) +
                             " ranges but " + std::to_string(ranges.launches.size()) +
                             " launches, so they cannot be told apart.");
      continue;
    }
    std::vector<SliceId> slices;
    for (const std::uint32_t row : ranges.rows) slices.push_back(static_cast<SliceId>(table.rows()[row].index));
    auto counters = input.event_arguments(table.trace(), slices);
    if (!counters) return fail(counters.error());
    ranges.counters = *std::move(counters);
    for (const EventArguments& all : ranges.counters) {
      for (const auto& [name, value] : all) {
        if (std::find(ranges.names.begin(), ranges.names.end(), name) == ranges.names.end())
          ranges.names.push_back(name);
      }
    }
    const CallGraph graph(table);
    Table out = columns_of(ranges.names);
    if (!answer.tables.empty()) out.name += "_rank" + std::to_string(table.rank());  // counters differ over ranks
    for (std::size_t i = 0; i < ranges.rows.size(); i++) out.rows.push_back(row_of(table, graph, ranges, i));
    answer.tables.push_back(std::move(out));
  }
  if (answer.tables.empty() && answer.notes.empty())
    answer.notes.emplace_back("The traces hold no CUPTI ranges (category cuda_profiler_range).");
  return answer;
}

}  // namespace

Analysis cupti_counter_data_with_operators_analysis() {
  return {"cupti_counter_data_with_operators", "What did the hardware counters say, and under which operators?",
          run_cupti_counter_data_with_operators};
}

}  // namespace stepscope::compat::hta
