// utilization: how well is the device used: GPU utilization, SM efficiency, estimated occupancy, tensor-core share.
//
// GPU utilization = busy / window. SM efficiency = Σ min(blocks per SM, 1) × duration / window. Occupancy is weighted
// by duration. Tensor-core share = time of kernels whose names say that they use tensor cores / kernel time. What a
// trace does not record about some kernels is said as the share of kernel time that is covered.
#include <algorithm>

#include "analyze/analysis.h"
#include "model/answer_parts.h"
#include "model/buckets.h"
#include "model/kernel_groups.h"

namespace stepscope::analyze {
namespace {

struct Use {
  std::int64_t kernel_ns = 0;        // sum of kernel durations
  std::int64_t blocks_known_ns = 0;  // of these, with blocks per SM known
  double efficient_span_ns = 0, efficient_steps_ns = 0;
  WeightedMean occupancy;
  std::int64_t tensor_ns = 0;
  std::vector<double> efficient_bucket_ns;
};

// Names are few and kernels many: each name is judged once.
std::vector<std::int8_t> tensor_core_names(const Trace& trace) {
  return std::vector<std::int8_t>(trace.strings.size(), -1);
}

Use use_of(const Trace& trace, const DeviceTime& device, const std::vector<Interval>& buckets) {
  Use use;
  use.efficient_bucket_ns.assign(buckets.size(), 0);
  IntervalSweep steps(device.steps);
  std::vector<std::int8_t> tensor = tensor_core_names(trace);
  for (const std::uint32_t row : device.rows) {
    const SliceId slice = trace.device.slice[row];
    if (trace.kind(slice) != SliceKind::kernel) continue;
    const Interval when{trace.slices.start_ns[slice], trace.slices.end_ns(slice)};
    const std::int64_t duration = when.end - when.start;
    use.kernel_ns += duration;
    if (const StringId name = trace.slices.name[slice]; name != StringId::none) {
      std::int8_t& judged = tensor[static_cast<std::size_t>(name)];
      if (judged < 0) judged = uses_tensor_cores(trace.strings[name]) ? 1 : 0;
      if (judged == 1) use.tensor_ns += duration;
    }
    if (const auto busy = occupancy(trace, row)) use.occupancy.add(*busy, duration);
    if (const auto blocks = blocks_per_sm(trace, row)) {
      const double filled = std::clamp(*blocks, 0.0, 1.0);
      use.blocks_known_ns += duration;
      use.efficient_span_ns += filled * static_cast<double>(duration);
      use.efficient_steps_ns += filled * static_cast<double>(steps.part_of(when));
      spread(use.efficient_bucket_ns, buckets, when, filled);
    }
  }
  return use;
}

Value over(double part, std::int64_t whole, bool known) {
  return known && whole > 0 ? Value(part / static_cast<double>(whole)) : Value();
}

Value name_of(const Trace& trace, std::int32_t device) {
  for (const DeviceInfo& info : trace.devices) {
    if (info.id == device) return text(info.name);
  }
  return {};
}

std::vector<TableColumn> columns() {
  return {
      {"rank", ValueType::integer, Unit::none, "Rank"},
      {"device", ValueType::integer, Unit::none, "Device of the rank"},
      {"name", ValueType::text, Unit::none, "Device as recorded"},
      {"gpu_utilization_span", ValueType::real, Unit::ratio, "Busy time over the span"},
      {"gpu_utilization_steps", ValueType::real, Unit::ratio, "Busy time inside the whole steps over their time"},
      {"sm_efficiency_span", ValueType::real, Unit::ratio,
       "Sum of min(blocks per SM, 1) × duration over the span; above 1 where kernels ran at once; unknown: no blocks "
       "recorded"},
      {"sm_efficiency_steps", ValueType::real, Unit::ratio,
       "Sum of min(blocks per SM, 1) × duration inside the whole steps over their time; above 1 where kernels ran at "
       "once; unknown: no blocks recorded"},
      {"occupancy", ValueType::real, Unit::ratio, "Estimated occupancy of kernels, weighted by duration"},
      {"tensor_core_share", ValueType::real, Unit::ratio,
       "Kernel time of kernels whose names say that they use tensor cores, over kernel time"},
      {"blocks_known_share", ValueType::real, Unit::ratio, "Share of kernel time for which blocks per SM are known"},
      {"occupancy_known_share", ValueType::real, Unit::ratio, "Share of kernel time for which the occupancy is known"}};
}

std::vector<Value> row_of(const Trace& trace, const DeviceTime& device, const Use& use) {
  const std::int64_t span = device.span.end - device.span.start, steps = length(device.steps);
  const bool blocks = use.blocks_known_ns > 0;
  return {device.rank,
          device.device < 0 ? Value() : Value(std::int64_t{device.device}),
          name_of(trace, device.device),
          share(length(device.busy), span),
          share(shared_length(device.busy, device.steps), steps),
          over(use.efficient_span_ns, span, blocks),
          over(use.efficient_steps_ns, steps, blocks),
          to_value(use.occupancy.mean()),
          share(use.tensor_ns, use.kernel_ns),
          share(use.blocks_known_ns, use.kernel_ns),
          share(use.occupancy.weight_ns, use.kernel_ns)};
}

void add_series(Answer& answer, const DeviceTime& device, const Use& use, const std::vector<Interval>& buckets) {
  const std::string where = "_rank" + std::to_string(device.rank) +
                            (device.device < 0 ? std::string() : "_device" + std::to_string(device.device));
  Series busy{.name = "gpu_utilization" + where, .unit = Unit::ratio};
  Series filled{.name = "sm_efficiency" + where, .unit = Unit::ratio};
  const auto lengths = lengths_in(device.busy, buckets);
  for (std::size_t i = 0; i < buckets.size(); i++) {
    const auto width = static_cast<double>(buckets[i].end - buckets[i].start);
    busy.t_ns.push_back(buckets[i].start);
    busy.v.push_back(static_cast<double>(lengths[i]) / width);
    filled.t_ns.push_back(buckets[i].start);
    filled.v.push_back(use.efficient_bucket_ns[i] / width);
  }
  answer.series.push_back(std::move(busy));
  if (use.blocks_known_ns > 0) answer.series.push_back(std::move(filled));
  // What ran: of each class the share of the bucket in which some work of it ran; classes may overlap.
  for (std::size_t i = 0; i < kDeviceClasses; i++) {
    if (device.classes[i].empty()) continue;
    Series ran{.name = std::string(to_string(static_cast<DeviceClass>(i))) + where, .unit = Unit::ratio};
    const auto parts = lengths_in(device.classes[i], buckets);
    for (std::size_t at = 0; at < buckets.size(); at++) {
      ran.t_ns.push_back(buckets[at].start);
      ran.v.push_back(static_cast<double>(parts[at]) / static_cast<double>(buckets[at].end - buckets[at].start));
    }
    answer.series.push_back(std::move(ran));
  }
}

// The mean of a column over the devices that have it.
Value mean_of(const Table& table, std::size_t column) {
  double sum = 0;
  std::size_t known = 0;
  for (const auto& row : table.rows) {
    if (const double* value = std::get_if<double>(&row[column])) {
      sum += *value;
      known++;
    }
  }
  return known > 0 ? Value(sum / static_cast<double>(known)) : Value();
}

void add_scalars(Answer& answer, const Table& table) {
  for (std::size_t column = 3; column < table.columns.size(); column++) {
    const TableColumn& about = table.columns[column];
    const Value mean = mean_of(table, column);
    std::string meaning = about.meaning;
    if (table.rows.empty()) {
      meaning = kNoDeviceWork;
    } else if (std::holds_alternative<std::monostate>(mean)) {
      meaning =
          about.name.find("_steps") != std::string::npos && !std::holds_alternative<std::monostate>(mean_of(table, 3))
              ? std::string(kNoSteps) + " (" + about.meaning + ")"
              : "Not recorded for this device: " + about.meaning;
    } else if (table.rows.size() > 1) {
      meaning += "; mean over the devices that have it";
    }
    add_scalar(answer, about.name, mean, about.unit, meaning);
  }
}

Result<Answer> run_utilization(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  Table table{.name = "devices", .columns = columns()};
  const auto ranks = rank_times(run);
  for (const RankTime& rank : ranks) {
    for (const DeviceTime& device : rank.devices) {
      const auto buckets = buckets_of(device.span);
      const Use use = use_of(*rank.trace, device, buckets);
      table.rows.push_back(row_of(*rank.trace, device, use));
      add_series(answer, device, use, buckets);
    }
  }
  add_scalars(answer, table);
  limit_rows(answer, table, options.max_rows, "further devices");
  answer.tables.push_back(std::move(table));
  if (!has_device_work(ranks)) {
    answer.notes.push_back(std::string(kNoDeviceWork));
  } else {
    answer.notes.push_back(
        "Tensor-core use is judged by the names of kernels: own kernels whose names do not tell count as not using "
        "them.");
    answer.notes.push_back(
        "SM efficiency adds up what each kernel fills, as its definition says: where streams overlap the sum can pass "
        "100 %, though no SM does more than one thing at a time.");
  }
  return answer;
}

}  // namespace

Analysis utilization_analysis() { return {"utilization", "How well is the device used?", run_utilization}; }

}  // namespace stepscope::analyze
