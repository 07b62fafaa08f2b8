// How busy the parts of an NVIDIA GPU are (GPM of NVML: Hopper and later): multiprocessors, tensor cores, memory,
// links. The driver gives counters as a sample, and the means between two samples; these may not lie closer than 100
// ms.
#include <array>
#include <cmath>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/nvml.h"

namespace stepscope::collect::telemetry {
namespace {

constexpr std::int64_t kLeastNs = 100'000'000;

struct Metric {
  unsigned id;  // NVML_GPM_METRIC_… of the header
  const char *name, *unit;
  double factor;
  const char* meaning;
};
constexpr double kPercent = 0.01, kMib = 1024.0 * 1024.0;
constexpr std::array<Metric, 14> kMetrics{{
    {1, "gpu_graphics_active", "ratio", kPercent, "Part of the time in which anything computed on it"},
    {2, "gpu_sm_active", "ratio", kPercent, "Part of its multiprocessors that had work"},
    {3, "gpu_sm_occupancy", "ratio", kPercent, "Warps on its multiprocessors, of the most that they can hold"},
    {5, "gpu_tensor_active", "ratio", kPercent, "Part of the time in which its tensor cores worked"},
    {7, "gpu_tensor_half_active", "ratio", kPercent, "The same, with numbers of 16 bits and fewer (HMMA)"},
    {9, "gpu_tensor_integer_active", "ratio", kPercent, "The same, with integers (IMMA)"},
    {10, "gpu_dram_active", "ratio", kPercent, "Bandwidth of its memory in use, of the most there is"},
    {11, "gpu_fp64_active", "ratio", kPercent, "Part of the time in which it computed with FP64, but on tensor cores"},
    {12, "gpu_fp32_active", "ratio", kPercent, "The same with FP32"},
    {13, "gpu_fp16_active", "ratio", kPercent, "The same with FP16"},
    {20, "gpu_pcie_send_rate", "bytes/s", kMib, "Bytes a second that it sent over PCIe"},
    {21, "gpu_pcie_receive_rate", "bytes/s", kMib, "Bytes a second that it received over PCIe"},
    {61, "gpu_nvlink_send_rate", "bytes/s", kMib, "Bytes a second that it sent over all its NVLinks"},
    {60, "gpu_nvlink_receive_rate", "bytes/s", kMib, "Bytes a second that it received over all its NVLinks"},
}};

// A buffer of the driver for one sample.
class Buffer {
 public:
  explicit Buffer(const nvml::Functions& call) : call_(&call) {
    if (call.gpm_alloc(&sample_) != nvml::kSuccess) sample_ = nullptr;
  }
  Buffer(Buffer&& other) noexcept : call_(other.call_), sample_(std::exchange(other.sample_, nullptr)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(sample_, other.sample_);
    return *this;
  }
  ~Buffer() {
    if (sample_ != nullptr) call_->gpm_free(sample_);
  }
  nvml::GpmSample get() const { return sample_; }

 private:
  const nvml::Functions* call_;
  nvml::GpmSample sample_ = nullptr;
};

struct Watched {
  nvml::Gpu gpu;
  Buffer before, now;
  std::int64_t before_ns = 0;  // 0: there is none
  std::array<std::uint32_t, kMetrics.size()> series{};
  bool gone = false;
};

class Gpm : public Source {
 public:
  Gpm(const Roots& roots, std::shared_ptr<nvml::Library> library)
      : library_(std::move(library)), call_(library_->call()), now_ns_(roots.now_ns), asked_(new nvml::GpmMetrics) {}

  // False: this GPU has no such counters, or they are not for us.
  nvml::Return watch(const nvml::Gpu& gpu) {
    nvml::GpmSupport support{1, 0};
    if (const nvml::Return result = call_.gpm_support(gpu.device, &support); result != nvml::kSuccess) return result;
    if (support.is_supported == 0) return nvml::kNotSupported;
    Watched one{gpu, Buffer(call_), Buffer(call_)};
    if (one.before.get() == nullptr || one.now.get() == nullptr) return nvml::kInsufficientSize;
    if (const nvml::Return result = call_.gpm_get(gpu.device, one.before.get()); result != nvml::kSuccess)
      return result;
    one.before_ns = now_ns_();
    gpus_.push_back(std::move(one));
    return nvml::kSuccess;
  }

  void sample(Sink& sink) override {
    for (Watched& one : gpus_) {
      const std::int64_t now = now_ns_();
      if (one.gone || now - one.before_ns < kLeastNs) continue;
      const nvml::Return result = call_.gpm_get(one.gpu.device, one.now.get());
      one.gone = nvml::is_gone(result);
      if (result != nvml::kSuccess) {
        one.before_ns = 0;  // a mean over the gap would be of two halves
        continue;
      }
      if (one.before_ns != 0) put(sink, one);
      std::swap(one.before, one.now);
      one.before_ns = now;
    }
  }

 private:
  void put(Sink& sink, Watched& one) {
    *asked_ = {1, static_cast<unsigned>(kMetrics.size()), one.before.get(), one.now.get(), {}};
    for (std::size_t i = 0; i < kMetrics.size(); i++) asked_->metrics[i].metric = kMetrics[i].id;
    if (call_.gpm_metrics(asked_.get()) != nvml::kSuccess) return;
    for (std::size_t i = 0; i < kMetrics.size(); i++) {
      const nvml::GpmMetric& told = asked_->metrics[i];
      if (told.result != nvml::kSuccess || !std::isfinite(told.value) || told.value < 0) continue;
      const Metric& metric = kMetrics[i];
      if (one.series[i] == 0) {
        one.series[i] = sink.series({"gpm", metric.name, one.gpu.target, metric.unit, run::SeriesKind::gauge,
                                     std::string(metric.meaning) + "; mean since the sample before"});
      }
      sink.add(one.series[i], told.value * metric.factor);
    }
  }

  std::shared_ptr<nvml::Library> library_;
  const nvml::Functions& call_;
  std::function<std::int64_t()> now_ns_;
  std::unique_ptr<nvml::GpmMetrics> asked_;
  std::vector<Watched> gpus_;
};

Error no_gpm(nvml::Return why) {
  if (why == nvml::kNoPermission) {
    return {
        ErrorKind::unsupported, "this user may not read the activity counters of the NVIDIA GPUs", "", std::nullopt,
        "Ask the administrator for them: the driver's option NVreg_RestrictProfilingToAdminUsers=0, or run as root"};
  }
  return {ErrorKind::unsupported, "these NVIDIA GPUs have no activity counters (GPM)", "", std::nullopt,
          "Use a GPU from Hopper on (H100, H200, B200) with driver 525 or newer"};
}

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  auto library = nvml::Library::open(roots.nvml);
  if (!library) return fail(library.error());
  const auto gpus = (*library)->gpus();
  if (!gpus) return fail(gpus.error());
  const nvml::Functions& call = (*library)->call();
  if (call.gpm_alloc == nullptr || call.gpm_free == nullptr || call.gpm_get == nullptr || call.gpm_metrics == nullptr ||
      call.gpm_support == nullptr) {
    return fail(no_gpm(nvml::kNotSupported));
  }
  auto source = std::make_unique<Gpm>(roots, *library);
  nvml::Return why = nvml::kNotSupported;
  bool any = false;
  const auto watch = [&](const nvml::Gpu& gpu) {
    const nvml::Return result = source->watch(gpu);
    any = any || result == nvml::kSuccess;
    if (result == nvml::kNoPermission) why = result;
  };
  for (const nvml::Gpu& gpu : *gpus) {
    const auto instances = (*library)->mig_instances(gpu);
    if (instances.empty()) watch(gpu);
    for (const nvml::Gpu& instance : instances) watch(instance);
  }
  if (!any) return fail(no_gpm(why));
  return source;
}

}  // namespace

Collector gpm_collector() {
  return {"gpm", "NVIDIA GPUs from Hopper on: multiprocessors, tensor cores, memory bandwidth, link rates",
          1000,  open,
          false, true};
}

}  // namespace stepscope::collect::telemetry
