#include "analyze/overview/verdict.h"

#include <algorithm>
#include <array>
#include <map>

#include "model/answer_parts.h"
#include "model/idle_gaps.h"

namespace stepscope::analyze::overview {
namespace {

// Compute first, then communication, so that communication here is what compute does not hide.
constexpr std::array kOrder{DeviceClass::compute, DeviceClass::communication, DeviceClass::unclassified,
                            DeviceClass::memory_copy, DeviceClass::memory_set};
constexpr std::string_view kIdle = "idle: ";

std::string part_name(DeviceClass part) {
  return part == DeviceClass::communication ? "communication exposed" : std::string(to_string(part));
}

struct Copies {
  std::int64_t busy_ns = 0;  // union on each device, summed over devices
  std::int64_t part_ns = 0;  // of it, what belongs to no kernel
  std::int64_t bytes = 0, timed_ns = 0;
  std::int64_t pageable = 0, count = 0;
};

// "HtoD" of "Memcpy HtoD (Pinned -> Device)".
std::string_view direction_of(std::string_view name) {
  static constexpr std::array directions{"HtoD", "DtoH", "DtoD", "PtoP", "HtoH"};
  for (const std::string_view direction : directions) {
    if (name.find(direction) != std::string_view::npos) return direction;
  }
  return {};
}

using CopiesByDirection = std::map<std::string_view, Copies>;

void add_copies(CopiesByDirection& all, const Trace& trace, const DeviceTime& device, const Intervals& window) {
  std::map<std::string_view, std::vector<Interval>> times;
  for (const std::uint32_t row : device.rows) {
    if (trace.device.device_class[row] != static_cast<std::uint8_t>(DeviceClass::memory_copy)) continue;
    const SliceId slice = trace.device.slice[row];
    const std::string_view name = trace.name(slice), direction = direction_of(name);
    Copies& sum = all[direction];
    times[direction].push_back({trace.slices.start_ns[slice], trace.slices.end_ns(slice)});
    sum.count++;
    sum.pageable += name.find("Pageable") != std::string_view::npos ? 1 : 0;
    if (trace.device.bytes[row] < 0) continue;  // not given
    sum.bytes += trace.device.bytes[row];
    sum.timed_ns += trace.slices.dur_ns[slice];
  }
  const Intervals kernels = unite(unite(device.of(DeviceClass::compute), device.of(DeviceClass::communication)),
                                  device.of(DeviceClass::unclassified));
  for (auto& [direction, intervals] : times) {
    const Intervals busy = make_intervals(std::move(intervals));
    all[direction].busy_ns += shared_length(busy, window);
    all[direction].part_ns += shared_length(subtract(busy, kernels), window);
  }
}

std::string direction_words(std::string_view direction) {
  if (direction == "HtoD") return "Host-to-device copies";
  if (direction == "DtoH") return "Device-to-host copies";
  if (direction == "DtoD") return "Copies within the device";
  if (direction == "PtoP") return "Copies between devices";
  return "Memory copies";
}

// Copies of several directions are one part; the finding is about the direction that takes most of it.
void explain_copies(Finding& finding, const CopiesByDirection& all, std::int64_t whole_ns, std::string_view window) {
  const auto most = std::max_element(all.begin(), all.end(),
                                     [](const auto& a, const auto& b) { return a.second.part_ns < b.second.part_ns; });
  if (most == all.end()) return;
  const auto& [direction, copies] = *most;
  finding.sentence = direction_words(direction) + " are the largest part of the device's " + std::string(window);
  finding.evidence = {
      {.text = "Share of the " + std::string(window), .value = share(copies.part_ns, whole_ns), .unit = Unit::ratio},
      {.text = "Time in which they ran, all devices", .value = copies.busy_ns, .unit = Unit::ns}};
  if (copies.timed_ns > 0) {
    finding.evidence.push_back({.text = "Bytes", .value = copies.bytes, .unit = Unit::bytes});
    // bytes over ns are GB/s
    finding.evidence.push_back({.text = "Speed",
                                .value = static_cast<double>(copies.bytes) / static_cast<double>(copies.timed_ns),
                                .unit = Unit::gb_per_s});
  }
  if (direction == "DtoD") {
    finding.next = "Look at overview.top_operators for who copies: avoid .contiguous(), clone() and changes of layout";
  } else if (copies.pageable * 2 > copies.count) {
    finding.next =
        "Pin the host memory (pin_memory=True) and copy with non_blocking=True, or keep the data on the device";
  } else {
    finding.next =
        "The memory is pinned already: copy less, or keep the data on the device (CPU offload?), or prefetch on a "
        "stream of its own while the device computes";
  }
}

struct Words {
  std::string_view part, id, cause, sentence, next;
};

constexpr std::array kWords{
    Words{"compute", "compute_bound", "compute", "Compute is the largest part of the device's %",
          "Look at the kernels answer for those that cost most"},
    Words{"communication exposed", "communication_bound", "communication",
          "Communication that no compute hides is the largest part of the device's %",
          "Look at the communication answer: start it earlier, make it smaller, or hide it behind compute"},
    Words{"unclassified", "unclassified_bound", "measurement",
          "Work whose names no rule knows is the largest part of the device's %",
          "Add rules for the names in the quality answer's table unclassified"},
    Words{"memory copy", "copy_bound", "copy", "Memory copies are the largest part of the device's %", ""},
    Words{"memory set", "fill_bound", "copy", "Memory fills are the largest part of the device's %",
          "Look at overview.top_operators for who fills: zeros() and zero_grad(set_to_none=False)"},
    Words{"idle", "idle_bound", "idle", "The device is idle for the largest part of its %",
          "Look at the idle answer for what it waits for"}};

std::string filled(std::string_view sentence, std::string_view word) {
  std::string out(sentence);
  const std::size_t at = out.find('%');
  return at == out.npos ? out : out.replace(at, 1, word);
}

}  // namespace

Parts device_parts(const Trace& trace, const DeviceTime& device, const Intervals& window) {
  Parts parts;
  Intervals taken;
  for (const DeviceClass part : kOrder) {
    const Intervals alone = subtract(device.of(part), taken);
    parts.emplace_back(part_name(part), shared_length(alone, window));
    taken = unite(taken, alone);
  }
  std::array<std::int64_t, kIdleCauses> causes{};
  for (const IdleGap& gap : idle_gaps(trace, device)) {
    causes[static_cast<std::size_t>(gap.cause)] += shared_length(std::span(&gap.when, 1), window);
  }
  for (std::size_t cause = 0; cause < kIdleCauses; cause++) {
    parts.emplace_back(std::string(kIdle) + std::string(to_string(static_cast<IdleCause>(cause))), causes[cause]);
  }
  return parts;
}

std::optional<Finding> verdict(const std::vector<RankTime>& ranks, bool steps) {
  std::map<std::string_view, std::int64_t> sums;  // by part, idle as one
  CopiesByDirection copies;
  std::map<std::string, std::int64_t> idle;
  std::int64_t whole = 0;
  for (const RankTime& rank : ranks) {
    for (const DeviceTime& device : rank.devices) {
      const Intervals window = steps ? device.steps : make_intervals({device.span});
      for (const auto& [name, ns] : device_parts(*rank.trace, device, window)) {
        const bool is_idle = name.starts_with(kIdle);
        const std::string_view part = is_idle ? std::string_view("idle") : std::string_view(name);
        const auto words =
            std::find_if(kWords.begin(), kWords.end(), [part](const Words& w) { return w.part == part; });
        if (words != kWords.end()) sums[words->part] += ns;
        if (is_idle) idle[name.substr(kIdle.size())] += ns;
        whole += ns;
      }
      add_copies(copies, *rank.trace, device, window);
    }
  }
  if (whole == 0) return std::nullopt;
  const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto largest = std::max_element(sums.begin(), sums.end(), by_time);
  const Words& words =
      *std::find_if(kWords.begin(), kWords.end(), [&](const Words& w) { return w.part == largest->first; });
  const std::string_view window = steps ? "steps" : "span";
  Finding finding{.id = std::string(words.id),
                  .cause = std::string(words.cause),
                  .sentence = filled(words.sentence, window),
                  .evidence = {{.text = "Share of the " + std::string(window),
                                .value = share(largest->second, whole),
                                .unit = Unit::ratio}},
                  .gain_reason = std::string(kNoGain),
                  .confidence = "high",
                  .next = std::string(words.next)};
  if (words.part == "memory copy") explain_copies(finding, copies, whole, window);
  if (words.part == "idle") {
    const auto cause = std::max_element(idle.begin(), idle.end(), by_time);
    finding.evidence.push_back(
        {.text = "Of it " + cause->first, .value = share(cause->second, largest->second), .unit = Unit::ratio});
  }
  return finding;
}

}  // namespace stepscope::analyze::overview
