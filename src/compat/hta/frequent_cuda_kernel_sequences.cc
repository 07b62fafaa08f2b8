// frequent_cuda_kernel_sequences: which kernels the operators of a name launch, in order of their starts. Operators
// are those nearest to the root whose name holds operator_name, with min_pattern_len kernels or more under them.
#include <algorithm>
#include <map>

#include "compat/compat.h"
#include "compat/hta/call_graph.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

struct Pattern {
  std::int64_t count = 0;
  double kernel_time = 0, op_time = 0;
};

std::string pattern_of(const EventTable& table, const CallGraph& graph, std::uint32_t root) {
  std::vector<Row> kernels;
  std::vector<std::uint32_t> rows = graph.subtree(root);
  std::sort(rows.begin(), rows.end());
  for (const std::uint32_t row : rows) {
    if (table.rows()[row].stream != kNone) kernels.push_back(table.rows()[row]);
  }
  std::string pattern(table.name(table.rows()[root]));
  for (const Row& kernel : by_start(kernels)) pattern += "|" + std::string(table.name(kernel));
  return pattern;
}

std::map<std::string, Pattern> patterns_of(const EventTable& table, const Input& input) {
  const std::string_view wanted = input.argument("operator_name");
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t row = 0; row < table.rows().size(); row++) {
    if (table.name(table.rows()[row]).find(wanted) != std::string_view::npos) candidates.push_back(row);
  }
  std::map<std::string, Pattern> patterns;
  if (candidates.empty()) return patterns;
  const CallGraph graph(table);
  std::int64_t least = graph.depth(candidates.front());
  for (const std::uint32_t row : candidates) least = std::min(least, graph.depth(row));
  for (const std::uint32_t row : candidates) {
    if (graph.depth(row) != least || static_cast<double>(graph.kernels(row)) < input.number("min_pattern_len"))
      continue;
    Pattern& pattern = patterns[pattern_of(table, graph, row)];
    pattern.count++;
    pattern.kernel_time += graph.kernel_time(row);
    pattern.op_time += table.rows()[row].dur;
  }
  return patterns;
}

Result<Answer> run_frequent_cuda_kernel_sequences(const Input& input) {
  Answer answer;
  Table out{.name = "frequent_cuda_kernel_sequences",
            .columns = {whole("rank", "Rank"), words("pattern", "Operator|kernel|kernel…"),
                        whole("count", "How often it came"), number("GPU kernel duration (us)", "Of all its kernels"),
                        number("CPU op duration (us)", "Of all its operators")}};
  for (const EventTable& table : input.tables().ranks) {
    const auto patterns = patterns_of(table, input);
    std::vector<std::pair<std::string, Pattern>> sorted(patterns.begin(), patterns.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
    for (const auto& [name, p] : sorted) out.rows.push_back({table.rank(), name, p.count, p.kernel_time, p.op_time});
  }
  if (out.rows.empty()) {
    answer.notes.push_back("No operator with " + std::string(input.argument("operator_name")) +
                           " in its name launches that many kernels; choose another with --arg operator_name=…");
  }
  answer.tables.push_back(std::move(out));
  return answer;
}

}  // namespace

Analysis frequent_cuda_kernel_sequences_analysis() {
  return {"frequent_cuda_kernel_sequences", "Which sequences of kernels come again and again?",
          run_frequent_cuda_kernel_sequences};
}

}  // namespace stepscope::compat::hta
