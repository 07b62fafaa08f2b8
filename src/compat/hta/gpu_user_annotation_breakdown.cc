// gpu_user_annotation_breakdown: the time of user annotations by name, of those on the device and those on the host.
#include <algorithm>

#include "compat/compat.h"
#include "compat/hta/name_groups.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

Table annotations(const Input& input, std::string_view name, std::string_view category, Answer& answer) {
  Table out{
      .name = std::string(name),
      .columns = {words("name", "Annotation"), number("sum (us)", "Sum of durations"), number("max (us)", "Longest"),
                  number("min (us)", "Shortest"), number("stddev", "Standard deviation of the sample"),
                  number("mean (us)", "Mean"), whole("rank", "Rank")}};
  for (const EventTable& table : input.tables().ranks) {
    std::vector<Row> rows;
    for (const Row& row : table.rows()) {
      if (table.category(row) == category) rows.push_back(row);
    }
    auto groups =
        by_name(table, rows, static_cast<std::size_t>(input.number("num_annotations")), input.number("duration_ratio"));
    std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    for (const NameGroup& g : groups) out.rows.push_back({g.name, g.sum, g.max, g.min, g.std, g.mean, table.rank()});
  }
  if (out.rows.empty()) answer.notes.push_back("The traces hold no events of category " + std::string(category) + ".");
  return out;
}

Result<Answer> run_gpu_user_annotation_breakdown(const Input& input) {
  Answer answer;
  answer.tables.push_back(annotations(input, "gpu", "gpu_user_annotation", answer));
  answer.tables.push_back(annotations(input, "cpu", "user_annotation", answer));
  return answer;
}

}  // namespace

Analysis gpu_user_annotation_breakdown_analysis() {
  return {"gpu_user_annotation_breakdown", "How long do the user annotations last?", run_gpu_user_annotation_breakdown};
}

}  // namespace stepscope::compat::hta
