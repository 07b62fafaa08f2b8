#include "compat/tensorboard/events.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <set>

namespace stepscope::compat::tensorboard {
namespace {

double microseconds(std::int64_t ns) {
  const std::int64_t whole = ns / 1000, rest = ns % 1000;
  return static_cast<double>(whole) + static_cast<double>(rest) / 1000.0;
}

bool is_collective(std::string_view name) {
  if (!name.starts_with("nccl:") && !name.starts_with("gloo:")) return false;
  constexpr std::array<std::string_view, 5> kinds{"broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter"};
  return std::find(kinds.begin(), kinds.end(), name.substr(5)) != kinds.end();
}

bool is_data_loader(std::string_view name) {
  return (name.starts_with("enumerate(DataLoader)#") && name.ends_with(".__next__")) ||
         name.starts_with("enumerate(DataPipe)#");
}

bool uses_tensor_cores(std::string_view name) {
  constexpr std::array parts{"h884",
                             "s884",
                             "h1688",
                             "s1688",
                             "hmma",
                             "i8816",
                             "16816",
                             "dgrad_1x1_stride_2x2",
                             "first_layer_wgrad_kernel",
                             "conv1x1",
                             "conv2d_c1_k1",
                             "direct_group",
                             "xmma_implicit_gemm",
                             "xmma_sparse_conv",
                             "xmma_warp_specialized_implicit_gemm",
                             "xmma_gemm",
                             "xmma_sparse_gemm",
                             "c1688"};
  return std::any_of(parts.begin(), parts.end(), [&](const char* part) { return name.find(part) != name.npos; });
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// The plugin's type of each category, by CategoryId; cuda_runtime is not among those it knows.
std::vector<std::string> categories_of(const Trace& trace) {
  std::vector<std::string> names;
  for (const Category& category : trace.categories) names.push_back(lower(trace.strings[category.name]));
  return names;
}

// External ids of collectives called on the host: kernels that carry one are communication.
std::set<std::int64_t> collective_ids(const Trace& trace) {
  std::set<std::int64_t> ids;
  for (std::size_t i = 0; i < trace.ops.size(); i++) {
    if (is_collective(trace.name(trace.ops.slice[i]))) ids.insert(trace.ops.external_id[i]);
  }
  return ids;
}

class Reader {
 public:
  explicit Reader(const Trace& trace) : trace_(trace), ids_(collective_ids(trace)) {}

  void add(SliceId slice, const std::string& category) {
    const std::string_view name = trace_.name(slice);
    const double start = microseconds(trace_.slices.start_ns[slice]);
    const Range when{start, start + microseconds(trace_.slices.dur_ns[slice])};
    const bool annotation = category == "user_annotation" || category == "gpu_user_annotation";
    const bool op = category == "cpu_op" || category == "operator" || category == "python";
    if (category == "kernel") return add_kernel(slice, when);
    if (category == "memcpy" || category == "gpu_memcpy") return add_role(Role::memcpy, when);
    if (category == "memset" || category == "gpu_memset") return add_role(Role::memset, when);
    if (category == "runtime") return add_role(Role::runtime, when);
    if (!annotation && !op) return;
    if (category != "python" && name.starts_with("ProfilerStep#")) {
      out_.steps.push_back({std::string(name.substr(13)), when});
      widen(when);
    } else if (is_collective(name)) {
      add_role(Role::communication, when);
      if (op) widen(when);
    } else if (op) {
      add_role(is_data_loader(name) ? Role::data_loader : Role::cpu_exec, when);
      widen(when);
    }
  }

  Events finish() {
    for (Ranges& ranges : out_.roles) ranges = united(std::move(ranges));
    if (out_.steps.empty() && host_.start <= host_.end) out_.steps.push_back({"0", host_});
    return std::move(out_);
  }

 private:
  void add_role(Role role, const Range& when) { out_.roles[role].push_back(when); }
  void widen(const Range& when) { host_ = {std::min(host_.start, when.start), std::max(host_.end, when.end)}; }
  void add_kernel(SliceId slice, const Range& when) {
    const DeviceRows& device = trace_.device;
    const auto* const found = std::lower_bound(device.slice.begin(), device.slice.end(), slice);
    if (found == device.slice.end() || *found != slice) return;
    const auto row = static_cast<std::size_t>(found - device.slice.begin());
    add_role(ids_.count(device.external_id[row]) > 0 ? Role::communication : Role::kernel, when);
    out_.kernels.push_back({when, device.device[row], device.blocks_per_sm[row], device.occupancy_percent[row],
                            uses_tensor_cores(trace_.name(slice))});
  }

  const Trace& trace_;
  std::set<std::int64_t> ids_;
  Events out_;
  Range host_{INFINITY, -INFINITY};
};

}  // namespace

Events read_events(const Trace& trace) {
  const std::vector<std::string> categories = categories_of(trace);
  std::vector<SliceId> order(trace.slices.size());
  for (std::size_t i = 0; i < order.size(); i++) order[i] = static_cast<SliceId>(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](SliceId a, SliceId b) { return trace.slices.start_ns[a] < trace.slices.start_ns[b]; });
  Reader reader(trace);
  for (const SliceId slice : order) {
    const CategoryId category = trace.slices.category[slice];
    if (category != CategoryId::none) reader.add(slice, categories[static_cast<std::size_t>(category)]);
  }
  return reader.finish();
}

}  // namespace stepscope::compat::tensorboard
