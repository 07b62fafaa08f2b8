// Large collectives far below what the links between their ranks carry: NCCL goes another way than it could.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/gathered.h"
#include "diagnose/groups.h"
#include "diagnose/queries.h"
#include "diagnose/sampled.h"
#include "model/lookup.h"

namespace stepscope::diagnose::causes {
namespace {

// What NVLink carries of one GPU in one direction, by the vendor's data sheets: parts that always have it. 0: those
// that may have none. The first that fits counts.
struct Link {
  std::string_view device;  // part of its name
  double gb_per_s;
};
constexpr std::array<Link, 10> kNvlinks{{{"GB300", 900},
                                         {"GB200", 900},
                                         {"B300", 900},
                                         {"B200", 900},
                                         {"H200 NVL", 0},
                                         {"H200", 450},
                                         {"H100 80GB HBM3", 450},
                                         {"A100-SXM", 300},
                                         {"A800-SXM", 200},
                                         {"V100-SXM2", 150}}};

constexpr double kUsualShare = 0.75;   // of a link, that large collectives reach
constexpr double kFarBelow = 0.4;      // of that
constexpr double kLeastReached = 0.5;  // of it, when it is mended

struct Carried {
  double gb_per_s = 0;
  std::string_view by;
};

std::optional<Carried> nvlink_of(const Case& about, const Group& group) {
  std::optional<double> least;
  for (const std::uint32_t number : group.traces) {
    for (const DeviceInfo& device : about.run.traces[number].devices) {
      const auto link = std::find_if(kNvlinks.begin(), kNvlinks.end(),
                                     [&](const Link& one) { return device.name.find(one.device) != device.name.npos; });
      if (link == kNvlinks.end() || link->gb_per_s <= 0 || device.name.find("GH200") != device.name.npos ||
          device.name.find("MIG") != device.name.npos) {
        return std::nullopt;
      }
      least = std::min(least.value_or(link->gb_per_s), link->gb_per_s);
    }
  }
  if (!least) return std::nullopt;
  return Carried{*least, "NVLink"};
}

// The ports of a machine, shared by all of its ranks.
std::optional<Carried> ports_of(const Case& about, const Group& group) {
  const Trace& first = about.run.traces[group.traces.front()];
  const auto ports = ports_bytes_per_ns(about.run, first.rank.rank);
  if (!ports) return std::nullopt;
  const auto ranks = [&](std::string_view machine, auto within) {
    return static_cast<double>(std::count_if(within.begin(), within.end(), [&](std::uint32_t number) {
      return machine_of(about.run.traces[number]) == machine;
    }));
  };
  std::vector<std::uint32_t> all(about.run.traces.size());
  std::iota(all.begin(), all.end(), 0);
  const std::string_view machine = machine_of(first);
  return Carried{*ports * ranks(machine, group.traces) / ranks(machine, all), "the InfiniBand or RoCE ports"};
}

// All slow groups of one kind together: while one of them is as it is, the ranks wait for it.
void find_slow_groups(const Case& about, bool inside, std::vector<Diagnosis>& out) {
  Gathered slow(about);
  const Group* first = nullptr;
  std::optional<Carried> link;
  std::int64_t count = 0;
  for (const Group& group : groups(about)) {
    if (!group.bus_gb_per_s || group.machines == 0 || (group.machines == 1) != inside) continue;
    const auto carried = inside ? nvlink_of(about, group) : ports_of(about, group);
    if (!carried || *group.bus_gb_per_s >= kFarBelow * kUsualShare * carried->gb_per_s) continue;
    const double usual = *group.bus_gb_per_s / (kUsualShare * carried->gb_per_s);
    slow.add(group.nodes, "group " + group.name, usual, std::min(1.0, usual / kLeastReached));
    if (first == nullptr) first = &group, link = carried;
    count++;
  }
  if (first == nullptr || !slow.worth_saying()) return;
  Diagnosis found = slow.diagnosis(
      {.cause = "communication",
       .sentence = "Collectives are far slower than " + std::string(link->by) + " between their ranks",
       .next = inside ? "Start the job with NCCL_DEBUG=INFO and look for the way that it takes (P2P, SHM, NET): "
                        "NCCL_P2P_DISABLE must not be set, and the container needs --ipc=host and all GPUs of the "
                        "machine; nvidia-smi topo -m shows the links"
                      : "Start the job with NCCL_DEBUG=INFO and look whether it says NET/IB or NET/Socket: "
                        "NCCL_IB_DISABLE must not be set, NCCL_IB_HCA must name all ports, and the container needs "
                        "/dev/infiniband",
       .doubt = inside ? "" : "other groups may have used the ports at the same time"});
  found.finding.where = {.phase = "communication", .op = "group " + first->name, .t_ns = found.finding.where.t_ns};
  auto& evidence = found.finding.evidence;
  evidence.push_back({.text = "Bus bandwidth of its large collectives",
                      .value = *first->bus_gb_per_s,
                      .unit = Unit::gb_per_s,
                      .query = collectives_of(first->name)});
  evidence.push_back(
      {.text = "What " + std::string(link->by) + " would carry", .value = link->gb_per_s, .unit = Unit::gb_per_s});
  if (count > 1) evidence.push_back({.text = "Such groups", .value = count, .unit = Unit::count});
  out.push_back(std::move(found));
}

}  // namespace

Cause slow_link_cause() {
  return {"slow_link", "Communication far below its link", [](const Case& about, std::vector<Diagnosis>& out) {
            for (const bool inside : {true, false}) find_slow_groups(about, inside, out);
          }};
}

}  // namespace stepscope::diagnose::causes
