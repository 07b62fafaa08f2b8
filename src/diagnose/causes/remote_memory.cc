// Threads that work on one NUMA node with memory that lies on another.
#include <algorithm>
#include <optional>

#include "diagnose/gathered.h"
#include "diagnose/queries.h"
#include "diagnose/sampled.h"
#include "model/lookup.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr double kMuchRemote = 0.2;  // of the traffic
constexpr double kLeastGbPerS = 5;   // below it memory binds nothing
// What memory of another socket costs more, by the latencies and bandwidths that are usual for two sockets.
constexpr double kMostGained = 0.5;

}  // namespace

Cause remote_memory_cause() {
  return {
      "remote_memory", "Memory of another NUMA node", [](const Case& about, std::vector<Diagnosis>& out) {
        const std::int64_t rank = about.trace.rank.rank;
        const auto all = sum_on_machine(about.run, rank, "memory_traffic");
        const auto remote = sum_on_machine(about.run, rank, "memory_traffic_remote");
        if (!all || !remote || *all < kLeastGbPerS || *remote < kMuchRemote * *all) return;
        const double share = std::min(1.0, *remote / *all);
        Gathered work_of(about);
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          if (work.device || work.role != simulate::NodeRole::host || work.operation == SliceId::none) return;
          if (work.trace->device.size() > 0) return;                       // there operators only launch
          if (machine_of(*work.trace) != machine_of(about.trace)) return;  // of which nothing was sampled
          work_of.add(node, work, work.name(), 1 - kMostGained * share, 1);
        });
        if (!work_of.worth_saying()) return;
        Diagnosis found = work_of.diagnosis(
            {.cause = "cpu",
             .sentence = "Threads work with memory of another NUMA node",
             .next =
                 "Bind each rank to one node: torchrun --numa-binding=node, or numactl --cpunodebind=N --membind=N; "
                 "of one process that fills the machine interleave the memory: numactl --interleave=all",
             .doubt = "which operators are bound by memory is not recorded"});
        found.finding.where = {.rank = rank};
        found.finding.evidence.push_back({.text = "Of the traffic with memory that crosses nodes",
                                          .value = share,
                                          .unit = Unit::ratio,
                                          .query = samples_of("memory_traffic_remote")});
        found.finding.evidence.push_back({.text = "Traffic with memory",
                                          .value = *all,
                                          .unit = Unit::gb_per_s,
                                          .query = samples_of("memory_traffic")});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
