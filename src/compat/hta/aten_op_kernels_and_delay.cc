// aten_op_kernels_and_delay: which kernels each aten:: operator launches, and how late. The operator is the one that
// started last of those that cover the launch call, on whatever thread. As HTA does not clear its list, the table of a
// rank holds those of the ranks before it too.
#include <algorithm>
#include <map>
#include <tuple>

#include "compat/compat.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

bool is_launch(std::string_view name) {
  return name.starts_with("runFunction") || name.starts_with("cuLaunchKernel") ||
         (name.starts_with("cuda") && name.find("LaunchKernel", 4) != std::string_view::npos);
}

// Finds the last of the operators, sorted by start, that had not ended at a time: a tree of latest ends.
class Cover {
 public:
  explicit Cover(std::vector<const Row*> ops) : ops_(std::move(ops)) {
    while (size_ < ops_.size()) size_ *= 2;
    latest_.assign(2 * size_, -1);
    for (std::size_t i = 0; i < ops_.size(); i++) latest_[size_ + i] = ops_[i]->end();
    for (std::size_t i = size_; i-- > 1;) latest_[i] = std::max(latest_[2 * i], latest_[2 * i + 1]);
  }
  const Row* find(double start, double end) const {
    const auto after =
        std::upper_bound(ops_.begin(), ops_.end(), start, [](double ts, const Row* op) { return ts < op->ts; });
    auto node = size_ + static_cast<std::size_t>(after - ops_.begin());
    for (; node > 1; node /= 2) {  // left neighbors, nearest first
      if (node % 2 == 1 && latest_[node - 1] >= end) break;
    }
    if (node <= 1) return nullptr;
    for (node--; node < size_;) node = 2 * node + (latest_[2 * node + 1] >= end ? 1 : 0);
    return ops_[node - size_];
  }

 private:
  std::vector<const Row*> ops_;
  std::size_t size_ = 2;
  std::vector<double> latest_;
};

struct OpCall {
  std::string name, kernels;
  double op_delay = 0, runtime_delay = 0;  // of its first launch
};
using CallKey = std::tuple<std::int64_t, std::uint32_t>;  // rank and event: one call of an operator

void add_calls(const EventTable& table, std::map<CallKey, OpCall>& calls) {
  std::vector<const Row*> ops;
  std::map<std::int64_t, const Row*> work;  // by index of its launch
  for (const Row& row : table.rows()) {
    if (table.name(row).starts_with("aten::")) ops.push_back(&row);
    if (row.stream != kNone && row.index_correlation > 0) work.emplace(row.index_correlation, &row);
  }
  std::stable_sort(ops.begin(), ops.end(), [](const Row* a, const Row* b) { return a->ts < b->ts; });
  const Cover cover(std::move(ops));
  for (const Row& launch : table.rows()) {
    const auto kernel = work.find(launch.index);
    if (!is_launch(table.name(launch)) || kernel == work.end()) continue;
    const Row* const op = cover.find(launch.ts, launch.end());
    if (op == nullptr) continue;
    OpCall& call = calls[{table.rank(), op->index}];
    if (call.kernels.empty()) {
      call = {std::string(table.name(*op)), "", launch.ts - op->ts, kernel->second->ts - launch.ts};
    } else {
      call.kernels += " -> ";
    }
    call.kernels += table.name(*kernel->second);
  }
}

void add_rows(std::int64_t rank, const std::map<CallKey, OpCall>& calls, Table& out) {
  struct Sum {
    std::int64_t count = 0;
    double op_delay = 0, runtime_delay = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const auto& [key, call] : calls) {
    Sum& sum = sums[{call.name, call.kernels}];
    sum.count++;
    sum.op_delay += call.op_delay;
    sum.runtime_delay += call.runtime_delay;
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Sum>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  for (const auto& [names, sum] : sorted) {
    const auto count = static_cast<double>(sum.count);
    out.rows.push_back({rank, names.first, names.second, sum.count, rounded(sum.op_delay / count, 3),
                        rounded(sum.runtime_delay / count, 3)});
  }
}

Result<Answer> run_aten_op_kernels_and_delay(const Input& input) {
  Answer answer;
  Table out{
      .name = "aten_op_kernels_and_delay",
      .columns = {whole("rank", "Rank"), words("aten_op_name", "Operator"),
                  words("kernel_sequence", "Kernels in order of their launches"), whole("occurrence_count", "Calls"),
                  number("avg_aten_op_launch_delay", "From the operator's start to its first launch, us"),
                  number("avg_runtime_delay", "From that launch to the start of its kernel, us")}};
  std::map<CallKey, OpCall> calls;
  for (const EventTable& table : input.tables().ranks) {
    add_calls(table, calls);
    add_rows(table.rank(), calls, out);
  }
  answer.tables.push_back(std::move(out));
  return answer;
}

}  // namespace

Analysis aten_op_kernels_and_delay_analysis() {
  return {"aten_op_kernels_and_delay", "Which kernels do operators launch, and how late do they start?",
          run_aten_op_kernels_and_delay};
}

}  // namespace stepscope::compat::hta
