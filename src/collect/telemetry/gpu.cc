// NVIDIA GPUs through the driver's library (nvml.h), and which rank uses which of them.
//
// What changes slowly, or takes the driver long, is asked for once a second. nvmlDeviceGetPcieThroughput is not used:
// it watches for 20 ms while we wait; counters of bytes are in the fields, and rates in the collector gpm.
#include <cmath>
#include <limits>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/gpu/ranks.h"
#include "collect/telemetry/gpu/values.h"
#include "collect/telemetry/nvml.h"
#include "collect/telemetry/rising.h"

namespace stepscope::collect::telemetry {
namespace {

using namespace gpu;  // the values

constexpr std::int64_t kSlowNs = 1'000'000'000 - 20'000'000;  // a second, whatever the interval rounds to

// NVML_FI_DEV_… of the header. Of two that tell the same the first that answers is taken.
struct Field {
  unsigned id, scope;
  Value value;
  std::int64_t factor;
};
constexpr unsigned kAllLinks = std::numeric_limits<unsigned>::max();
constexpr std::array<Field, 9> kFields{{
    {186, 0, kPower, 1},                      // POWER_INSTANT, mW
    {74, 0, kPowerLimitedTime, 1},            // PERF_POLICY_POWER, ns
    {75, 0, kHeatLimitedTime, 1},             // PERF_POLICY_THERMAL, ns
    {197, 0, kPcieSent, 1},                   // PCIE_COUNT_TX_BYTES
    {198, 0, kPcieReceived, 1},               // PCIE_COUNT_RX_BYTES
    {138, kAllLinks, kNvlinkSent, 1024},      // NVLINK_THROUGHPUT_DATA_TX, KiB
    {139, kAllLinks, kNvlinkReceived, 1024},  // NVLINK_THROUGHPUT_DATA_RX
    {202, kAllLinks, kNvlinkSent, 1},         // NVLINK_COUNT_XMIT_BYTES, from NVLink 5 on
    {204, kAllLinks, kNvlinkReceived, 1},     // NVLINK_COUNT_RCV_BYTES
}};
constexpr unsigned kMemoryTemperatureField = 82;

std::optional<std::int64_t> whole(const nvml::FieldValue& field) {
  if (field.result != nvml::kSuccess) return std::nullopt;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const auto fits = [](unsigned long long value) -> std::optional<std::int64_t> {
    if (value > static_cast<unsigned long long>(kMost) / 1024) return std::nullopt;  // room for our factor
    return static_cast<std::int64_t>(value);
  };
  switch (field.type) {
    case 0:
      if (!(field.value.as_double >= 0 && field.value.as_double < 1e15)) return std::nullopt;
      return static_cast<std::int64_t>(field.value.as_double);
    case 1: return field.value.as_unsigned;
    case 2: return fits(field.value.as_unsigned_long);
    case 3: return fits(field.value.as_unsigned_long_long);
    case 4:
      return field.value.as_long_long < 0 ? std::nullopt
                                          : fits(static_cast<unsigned long long>(field.value.as_long_long));
    case 5: return field.value.as_int < 0 ? std::nullopt : std::optional<std::int64_t>(field.value.as_int);
    case 6: return field.value.as_unsigned_short;
    default: return std::nullopt;
  }
}

struct Watched {
  nvml::Gpu gpu;
  std::vector<Field> fields;             // those that it has
  std::vector<nvml::FieldValue> answer;  // of these
  std::vector<nvml::Gpu> instances;      // of MIG
  std::array<std::uint32_t, kValues> series{};
  std::array<Rising, kValues> rising;
  std::array<bool, kValues> wide{};  // a counter of PCIe that was seen above 2^32
  bool gone = false;
};

class GpuSource : public Source {
 public:
  GpuSource(const Roots& roots, std::shared_ptr<nvml::Library> library, std::vector<nvml::Gpu> gpus)
      : library_(std::move(library)), call_(library_->call()), ranks_(roots.proc), now_ns_(roots.now_ns) {
    for (nvml::Gpu& one : gpus) {
      Watched watched{std::move(one), {}, {}, {}};
      watched.instances = library_->mig_instances(watched.gpu);
      find_fields(watched);
      gpus_.push_back(std::move(watched));
    }
  }

  void follow(const std::vector<Group>& groups) override { ranks_.follow(groups); }

  void sample(Sink& sink) override {
    const std::int64_t now = now_ns_();
    const bool slow = slow_at_ns_ == 0 || now - slow_at_ns_ >= kSlowNs;
    if (slow) slow_at_ns_ = now;
    for (Watched& one : gpus_) {
      if (!one.gone) sample_fast(sink, one, slow);
      if (slow && !one.gone) sample_slow(sink, one);
    }
    if (slow && ranks_.are_followed()) sample_ranks(sink);
  }

 private:
  // A function of the driver; false: it has none, or no answer, and there is no sample.
  template <class Function, class... Arguments>
  bool ask(Watched& one, Function* function, Arguments... arguments) {
    if (function == nullptr || one.gone) return false;
    const nvml::Return result = function(one.gpu.device, arguments...);
    one.gone = nvml::is_gone(result);
    return result == nvml::kSuccess;
  }

  void find_fields(Watched& one) {
    std::array<bool, kValues> known{};
    for (const Field& field : kFields) {
      nvml::FieldValue value{field.id, field.scope};
      if (known[field.value] || !ask(one, call_.fields, 1, &value) || !whole(value)) continue;
      known[field.value] = true;
      one.fields.push_back(field);
      one.answer.push_back(value);
    }
  }

  std::uint32_t series(Sink& sink, Watched& one, Value value) {
    std::uint32_t& number = one.series[value];
    if (number == 0) {
      const About& about = kAbout[value];
      std::string meaning = about.meaning;
      if (value == kMemoryTotal && !one.gpu.model.empty()) meaning += ": " + one.gpu.model;
      number = sink.series({"gpu", about.name, one.gpu.target, about.unit, about.kind, std::move(meaning)});
    }
    return number;
  }

  void level(Sink& sink, Watched& one, Value value, double level) { sink.add(series(sink, one, value), level); }

  void count(Sink& sink, Watched& one, Value value, std::int64_t raw) {
    sink.add(series(sink, one, value), one.rising[value].next(raw));
  }

  void sample_fast(Sink& sink, Watched& one, bool slow) {
    unsigned long long number = 0;
    if (ask(one, call_.energy, &number) && number < (1ULL << 50)) {
      count(sink, one, kEnergy, static_cast<std::int64_t>(number) * 1000);
    }
    sample_fields(sink, one);
    nvml::Utilization utilization{};
    if (ask(one, call_.utilization, &utilization)) {
      level(sink, one, kUtilization, utilization.gpu / 100.0);
      level(sink, one, kMemoryUtilization, utilization.memory / 100.0);
    }
    sample_memory(sink, one, slow);
    unsigned megahertz = 0;
    if (ask(one, call_.clock, 1, &megahertz)) level(sink, one, kSmClock, megahertz * 1e6);
    if (ask(one, call_.reasons, &number)) {  // bits nvmlClocksEventReason… of the header
      const auto any = [&](unsigned long long bits) { return (number & bits) != 0 ? 1.0 : 0.0; };
      level(sink, one, kLimitedByPower, any(0x4 | 0x80));
      level(sink, one, kLimitedByHeat, any(0x20 | 0x40));
      level(sink, one, kLimitedByHardware, any(0x8));
      level(sink, one, kLimitedBySetting, any(0x2 | 0x10 | 0x100));
      level(sink, one, kIdle, any(0x1));
    }
  }

  void sample_fields(Sink& sink, Watched& one) {
    bool has_power = false;
    if (!one.answer.empty() && ask(one, call_.fields, static_cast<int>(one.answer.size()), one.answer.data())) {
      for (std::size_t i = 0; i < one.fields.size(); i++) {
        const Field& field = one.fields[i];
        const auto number = whole(one.answer[i]);
        one.gone = one.gone || nvml::is_gone(one.answer[i].result);
        if (!number) continue;
        if (field.value == kPower) {
          level(sink, one, kPower, static_cast<double>(*number) / 1000);
          has_power = true;
          continue;
        }
        // These may have 32 bits only, which are full many times between two samples; one that was above has more.
        const bool may_be_narrow = field.value == kPcieSent || field.value == kPcieReceived;
        one.wide[field.value] = one.wide[field.value] || *number > std::numeric_limits<std::uint32_t>::max();
        if (!may_be_narrow || one.wide[field.value]) count(sink, one, field.value, *number * field.factor);
      }
    }
    unsigned milliwatts = 0;
    if (!has_power && ask(one, call_.power, &milliwatts)) level(sink, one, kPower, milliwatts / 1000.0);
  }

  void sample_memory(Sink& sink, Watched& one, bool slow) {
    nvml::Memory2 memory{nvml::version_of(sizeof(nvml::Memory2), 2)};
    if (!ask(one, call_.memory2, &memory)) {
      nvml::Memory older{};  // counts what the driver keeps for itself as used
      if (!ask(one, call_.memory, &older)) return;
      memory = {0, older.total, 0, older.free, older.used};
    }
    level(sink, one, kMemoryUsed, static_cast<double>(memory.used));
    if (!slow) return;
    level(sink, one, kMemoryFree, static_cast<double>(memory.free));
    level(sink, one, kMemoryTotal, static_cast<double>(memory.total));
  }

  void sample_slow(Sink& sink, Watched& one) {
    unsigned number = 0;
    unsigned long long errors = 0;
    if (ask(one, call_.power_limit, &number)) level(sink, one, kPowerLimit, number / 1000.0);
    if (ask(one, call_.clock, 2, &number)) level(sink, one, kMemoryClock, number * 1e6);
    nvml::Temperature warm{nvml::version_of(sizeof(nvml::Temperature), 1), 0, 0};
    if (ask(one, call_.temperature_of, &warm)) {
      level(sink, one, kTemperature, warm.celsius);
    } else if (ask(one, call_.temperature, 0, &number)) {
      level(sink, one, kTemperature, number);
    }
    nvml::FieldValue memory{kMemoryTemperatureField, 0};
    if (ask(one, call_.fields, 1, &memory)) {
      if (const auto celsius = whole(memory); celsius && *celsius > 0) {  // 0: it has no sensor
        level(sink, one, kMemoryTemperature, static_cast<double>(*celsius));
      }
    }
    if (ask(one, call_.ecc, 1, 0, &errors) && errors < (1ULL << 62)) {
      count(sink, one, kEccUncorrected, static_cast<std::int64_t>(errors));
    }
    if (ask(one, call_.replays, &number)) count(sink, one, kPcieReplays, number);
    for (const nvml::Gpu& instance : one.instances) {
      nvml::Memory of_it{};
      if (call_.memory == nullptr || call_.memory(instance.device, &of_it) != nvml::kSuccess) continue;
      const auto put = [&](Value value, unsigned long long bytes, const std::string& model) {
        const About& about = kAbout[value];
        sink.add(sink.series({"gpu", about.name, instance.target, about.unit, about.kind, about.meaning + model}),
                 static_cast<double>(bytes));
      };
      put(kMemoryUsed, of_it.used, "");
      put(kMemoryTotal, of_it.total, instance.model.empty() ? "" : ": " + instance.model);
    }
  }

  void sample_ranks(Sink& sink) {
    ranks_.begin();
    for (Watched& one : gpus_) {
      if (one.instances.empty()) find_processes(one, one.gpu.device);
      for (const nvml::Gpu& instance : one.instances) find_processes(one, instance.device);
    }
    ranks_.sample(sink);
  }

  void find_processes(Watched& one, nvml::Device device) {
    nvml::Return result = nvml::kSuccess;
    if (!one.gone && library_->processes_on(device, processes_, result)) ranks_.add(one.gpu.index, processes_);
    one.gone = one.gone || nvml::is_gone(result);
  }

  std::shared_ptr<nvml::Library> library_;
  const nvml::Functions& call_;
  Ranks ranks_;
  std::function<std::int64_t()> now_ns_;
  std::vector<Watched> gpus_;
  std::vector<nvml::Process> processes_;
  std::int64_t slow_at_ns_ = 0;
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  auto library = nvml::Library::open(roots.nvml);
  if (!library) return fail(library.error());
  auto gpus = (*library)->gpus();
  if (!gpus) return fail(gpus.error());
  return std::make_unique<GpuSource>(roots, std::move(*library), std::move(*gpus));
}

}  // namespace

Collector gpu_collector() {
  return {"gpu", "NVIDIA GPUs: use, memory, power, clocks, what slows them, links; memory of each rank",
          200,   open,
          false, true};
}

}  // namespace stepscope::collect::telemetry
