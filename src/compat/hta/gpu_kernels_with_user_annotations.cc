// gpu_kernels_with_user_annotations: each device row with the shortest device annotation of its track that overlaps it.
// Rows without a duration get none, as in HTA.
#include <algorithm>
#include <map>
#include <numeric>

#include "compat/compat.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

bool is_device_side(const EventTable& table, const Row& row) {
  const std::string_view name = table.name(row);
  return (row.stream >= 0 && row.correlation >= 0) || name == "Event Sync" || name == "Context Sync";
}

// Rows of one track; the shortest annotations are given out first and each row is taken once.
void annotate(std::vector<const Row*> rows, std::vector<const Row*> annotations,
              std::map<const Row*, const Row*>& found) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row* a, const Row* b) { return a->ts < b->ts; });
  std::stable_sort(annotations.begin(), annotations.end(), [](const Row* a, const Row* b) { return a->dur < b->dur; });
  std::vector<double> latest_end;
  for (const Row* const row : rows)
    latest_end.push_back(std::max(row->end(), latest_end.empty() ? row->end() : latest_end.back()));
  std::vector<std::size_t> next(rows.size() + 1);  // the next row that is not taken, by union-find
  std::iota(next.begin(), next.end(), 0);
  const auto free_from = [&](std::size_t at) {
    while (next[at] != at) at = next[at] = next[next[at]];
    return at;
  };
  for (const Row* const annotation : annotations) {
    const auto first = std::upper_bound(latest_end.begin(), latest_end.end(), annotation->ts);
    for (std::size_t at = free_from(static_cast<std::size_t>(first - latest_end.begin()));
         at < rows.size() && rows[at]->ts < annotation->end(); at = free_from(at + 1)) {
      if (rows[at]->end() <= annotation->ts || rows[at]->dur <= 0) continue;
      found[rows[at]] = annotation;
      next[at] = at + 1;
    }
  }
}

Result<Answer> run_gpu_kernels_with_user_annotations(const Input& input) {
  Answer answer;
  Table out{.name = "gpu_kernels_with_user_annotations",
            .columns = {whole("rank", "Rank"), whole("index", "Event"), words("name", "Kernel"),
                        whole("stream", "Stream"), number("ts", "us since the earliest event of all ranks"),
                        number("dur", "us"), words("user_annotation", "Shortest annotation that overlaps it")}};
  for (const EventTable& table : input.tables().ranks) {
    struct Lane {
      std::vector<const Row*> rows, annotations;
    };
    std::map<TrackId, Lane> lanes;
    std::vector<const Row*> kernels;
    for (const Row& row : table.rows()) {
      Lane& lane = lanes[table.trace().slices.track[row.index]];
      if (table.category(row) == "gpu_user_annotation") lane.annotations.push_back(&row);
      if (!is_device_side(table, row)) continue;
      lane.rows.push_back(&row);
      kernels.push_back(&row);
    }
    std::map<const Row*, const Row*> found;
    bool any = false;
    for (auto& [track, lane] : lanes) {
      any = any || !lane.annotations.empty();
      annotate(std::move(lane.rows), std::move(lane.annotations), found);
    }
    if (!any) {
      answer.notes.push_back("Rank " + std::to_string(table.rank()) + " has no annotations on the device.");
      continue;
    }
    for (const Row* const kernel : kernels) {
      const auto annotation = found.find(kernel);
      out.rows.push_back({table.rank(), std::int64_t{kernel->index}, std::string(table.name(*kernel)), kernel->stream,
                          kernel->ts, kernel->dur,
                          annotation == found.end() ? Value() : Value(std::string(table.name(*annotation->second)))});
    }
  }
  answer.tables.push_back(std::move(out));
  return answer;
}

}  // namespace

Analysis gpu_kernels_with_user_annotations_analysis() {
  return {"gpu_kernels_with_user_annotations", "Under which annotation did each kernel run?",
          run_gpu_kernels_with_user_annotations};
}

}  // namespace stepscope::compat::hta
