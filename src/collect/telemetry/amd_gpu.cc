// AMD GPUs from the files of the kernel's driver amdgpu (Documentation/gpu/amdgpu and Documentation/hwmon of Linux),
// and which rank uses which of them, from those of its compute driver KFD.
//
// Left out: pcie_bw, which makes its reader wait a second, and the binary gpu_metrics, whose layout changes by chip.
#include <algorithm>
#include <filesystem>

#include "collect/telemetry/amd_gpu/compute_processes.h"
#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/numbers.h"
#include "collect/telemetry/rising.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;
using run::SeriesKind;

constexpr std::int64_t kSlowNs = 1'000'000'000 - 20'000'000;

// A file with one number. Of two with the same name the first that is there is taken.
struct Value {
  const char* file;  // below the device; hwmon/: of its sensors
  const char *name, *unit;
  SeriesKind kind;
  double factor;  // of a gauge
  bool is_slow;
  const char* meaning;
};
constexpr std::array<Value, 16> kValues{{
    {"gpu_busy_percent", "gpu_utilization", "ratio", SeriesKind::gauge, 0.01, false,
     "How busy the GPU is, as its firmware measures it"},
    {"mem_busy_percent", "gpu_memory_utilization", "ratio", SeriesKind::gauge, 0.01, false,
     "How busy its memory is, as its firmware measures it"},
    {"mem_info_vram_used", "gpu_memory_used", "bytes", SeriesKind::gauge, 1, false, "Memory that is allocated on it"},
    {"mem_info_vram_total", "gpu_memory_total", "bytes", SeriesKind::gauge, 1, true, "Memory of it"},
    {"hwmon/energy1_input", "gpu_energy", "uJ", SeriesKind::counter, 1, false, "Energy that it used"},
    {"hwmon/power1_average", "gpu_power", "W", SeriesKind::gauge, 1e-6, false, "Power that it draws, a short mean"},
    {"hwmon/power1_input", "gpu_power", "W", SeriesKind::gauge, 1e-6, false, "Power that it draws at the moment"},
    {"hwmon/power1_cap", "gpu_power_limit", "W", SeriesKind::gauge, 1e-6, true, "Power that it may draw"},
    {"hwmon/freq1_input", "gpu_sm_clock", "hertz", SeriesKind::gauge, 1, false, "Clock of its compute units"},
    {"hwmon/freq2_input", "gpu_memory_clock", "hertz", SeriesKind::gauge, 1, true, "Clock of its memory"},
    {"hwmon/temp2_input", "gpu_temperature", "celsius", SeriesKind::gauge, 1e-3, true,
     "Temperature of the hottest place of the chip"},
    {"hwmon/temp1_input", "gpu_temperature", "celsius", SeriesKind::gauge, 1e-3, true, "Temperature of the chip"},
    {"hwmon/temp3_input", "gpu_memory_temperature", "celsius", SeriesKind::gauge, 1e-3, true,
     "Temperature of its memory"},
    {"pcie_replay_count", "gpu_pcie_replays", "count", SeriesKind::counter, 1, true,
     "Times that PCIe had to send again"},
    {"ras/umc_err_count", "gpu_ecc_uncorrected", "count", SeriesKind::counter, 1, true,
     "Errors of its memory that could not be corrected, since the driver was loaded"},
    {"pp_dpm_sclk", "gpu_sm_clock", "hertz", SeriesKind::gauge, 1e6, false, "Clock of its compute units, by its steps"},
}};

// "1: 1780Mhz *": of the step that is marked; "ue: 0": behind the word.
std::optional<std::int64_t> number_in(std::string_view text, std::string_view file) {
  if (file == "ras/umc_err_count") return number_after(text, "ue");
  if (file != "pp_dpm_sclk") return first_number(text);
  const std::size_t mark = text.find('*');
  if (mark == text.npos) return std::nullopt;
  const std::size_t before = text.rfind('\n', mark), line = before == text.npos ? 0 : before + 1;
  const std::size_t colon = text.find(':', line);
  if (colon >= mark) return std::nullopt;
  std::size_t at = colon + 1;
  const auto megahertz = next_number(text, at);
  const std::string_view unit = text.substr(at, 3);
  return unit == "Mhz" || unit == "MHz" ? megahertz : std::nullopt;
}

struct Watched {
  const Value* value;
  KeptFile file;
  std::uint32_t series = 0;
  Rising rising;
};

struct Card {
  std::string device;  // the folder
  std::string place;   // 0000:c1:00.0, which is the order of the GPUs
  std::string target;
  std::string model;
  std::vector<Watched> values;
};

std::string sensors_of(const std::string& device) {
  std::error_code code;
  for (fs::directory_iterator at(device + "/hwmon", code), end; !code && at != end; at.increment(code)) {
    if (at->path().filename().string().rfind("hwmon", 0) == 0) return at->path().string();
  }
  return {};
}

// renderD128 …: what KFD calls the GPU by
std::vector<std::int64_t> render_minors(const std::string& device) {
  std::vector<std::int64_t> all;
  std::error_code code;
  for (fs::directory_iterator at(device + "/drm", code), end; !code && at != end; at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (name.rfind("renderD", 0) != 0) continue;
    if (const auto number = first_number(name.substr(7))) all.push_back(*number);
  }
  return all;
}

std::vector<Card> find_cards(const std::string& sys) {
  std::vector<Card> cards;
  std::error_code code;
  for (fs::directory_iterator at(sys + "/class/drm", code), end; !code && at != end; at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (name.rfind("card", 0) != 0 || name.size() == 4 || name.find_first_not_of("0123456789", 4) != name.npos)
      continue;
    Card card;
    card.device = (at->path() / "device").string();
    if (first_line_of(card.device + "/vendor") != "0x1002") continue;
    const std::string about = "\n" + std::string(KeptFile(card.device + "/uevent").read());
    if (const std::size_t slot = about.find("\nPCI_SLOT_NAME="); slot != about.npos) {
      card.place = about.substr(slot + 15, about.find('\n', slot + 1) - slot - 15);
    }
    card.model = first_line_of(card.device + "/product_name");
    if (!card.place.empty()) card.model += (card.model.empty() ? "" : ", ") + card.place;
    if (card.place.empty()) card.place = name;
    const std::string sensors = sensors_of(card.device);
    for (const Value& value : kValues) {
      const std::string file = value.file;
      const bool is_sensor = file.rfind("hwmon/", 0) == 0;
      if (is_sensor && sensors.empty()) continue;
      const bool is_known = std::any_of(card.values.begin(), card.values.end(), [&](const Watched& one) {
        return std::string_view(one.value->name) == value.name;
      });
      if (is_known) continue;
      KeptFile kept(is_sensor ? sensors + file.substr(5) : card.device + "/" + file);
      if (number_in(kept.read(), file)) card.values.push_back({&value, std::move(kept)});
    }
    if (!card.values.empty()) cards.push_back(std::move(card));
  }
  std::sort(cards.begin(), cards.end(), [](const Card& one, const Card& other) { return one.place < other.place; });
  return cards;
}

class AmdGpu : public Source {
 public:
  AmdGpu(const Roots& roots, std::vector<Card> cards)
      : cards_(std::move(cards)), processes_(roots), now_ns_(roots.now_ns) {
    for (std::size_t i = 0; i < cards_.size(); i++) {
      // Not "gpu 0", which the GPU of another maker may be on the same machine.
      cards_[i].target = "amd gpu " + std::to_string(i);
      for (const std::int64_t minor : render_minors(cards_[i].device)) processes_.has_gpu(i, minor);
    }
  }

  void follow(const std::vector<Group>& groups) override { processes_.follow(groups); }

  void sample(Sink& sink) override {
    const std::int64_t now = now_ns_();
    const bool slow = slow_at_ns_ == 0 || now - slow_at_ns_ >= kSlowNs;
    if (slow) slow_at_ns_ = now;
    for (Card& card : cards_) {
      for (Watched& one : card.values) {
        if (slow || !one.value->is_slow) sample_one(sink, card, one);
      }
    }
    if (slow) processes_.sample(sink);
  }

 private:
  static void sample_one(Sink& sink, const Card& card, Watched& one) {
    const Value& value = *one.value;
    const auto number = number_in(one.file.read(), value.file);
    if (!number) return;
    if (one.series == 0) {
      std::string meaning = value.meaning;
      if (std::string_view(value.name) == "gpu_memory_total" && !card.model.empty()) meaning += ": " + card.model;
      one.series = sink.series({"amd_gpu", value.name, card.target, value.unit, value.kind, std::move(meaning)});
    }
    if (value.kind == SeriesKind::gauge) {
      sink.add(one.series, static_cast<double>(*number) * value.factor);
    } else if (*number >= 0) {
      sink.add(one.series, one.rising.next(*number));
    }
  }

  std::vector<Card> cards_;
  amd_gpu::ComputeProcesses processes_;
  std::function<std::int64_t()> now_ns_;
  std::int64_t slow_at_ns_ = 0;
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  std::vector<Card> cards = find_cards(roots.sys);
  if (cards.empty()) {
    return fail({ErrorKind::unsupported, "no AMD GPU with the driver amdgpu is on this machine",
                 roots.sys + "/class/drm", std::nullopt,
                 "Load the driver as root where there is one: modprobe amdgpu"});
  }
  return std::make_unique<AmdGpu>(roots, std::move(cards));
}

}  // namespace

Collector amd_gpu_collector() {
  return {"amd_gpu", "AMD GPUs: use, memory, power, clocks, temperature; memory of each rank", 200, open, false, true};
}

}  // namespace stepscope::collect::telemetry
