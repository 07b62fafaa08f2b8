// Stages of a pipeline that wait for each other: what one computes the other waits for, in turn.
#include <algorithm>
#include <map>

#include "diagnose/communicating.h"
#include "diagnose/gathered.h"
#include "diagnose/local_ranks.h"

namespace stepscope::diagnose::causes {
namespace {

bool is_between_stages(const Collective& one) {
  return one.kind == CollectiveKind::send || one.kind == CollectiveKind::receive;
}

}  // namespace

Cause pipeline_bubbles_cause() {
  return {"pipeline_bubbles", "Stages of a pipeline that wait for each other",
          [](const Case& about, std::vector<Diagnosis>& out) {
            constexpr double kBusyEnough = 0.75;
            const Communicating& all = communicating(about);
            const auto first = std::find_if(all.collectives.begin(), all.collectives.end(), is_between_stages);
            if (first == all.collectives.end()) return;
            // What ranks with devices compute is not on their threads: there this cannot tell.
            if (about.trace.device.size() > 0) return;
            // What each rank does itself, of the time of the steps.
            std::map<const Trace*, std::int64_t> busy;
            const simulate::ReplayGraph& graph = about.predictor.graph();
            for (const simulate::StepWindow& window : about.predictor.windows()) {
              if (window.lane == simulate::kNone) continue;
              std::int64_t& sum = busy[&about.run.traces[window.trace]];
              for (const std::uint32_t node : graph.lanes[window.lane].nodes) {
                if (graph.start_ns[node] < window.start_ns || graph.start_ns[node] >= window.end_ns) continue;
                if (about.work(node).operation != SliceId::none && graph.role[node] == simulate::NodeRole::host) {
                  sum += about.cost_ns(node);
                }
              }
            }
            if (busy.size() < 2) return;
            std::int64_t most = 0;
            for (const auto& [trace, ns] : busy) most = std::max(most, ns);
            const double part = about.share(most);
            if (part > kBusyEnough) return;
            // With m micro batches p stages are busy m of m + p - 1 turns; m is a multiple of p in 1F1B and others.
            const auto stages = static_cast<double>(busy.size());
            // Ranks of one machine that compute at once share its memory and caches, and its cores' units.
            constexpr double kShared = 1.25;
            const bool share = local_ranks(about) > 1;
            const double left = std::min(1.0, (share ? kShared : 1) * part * (1 + (stages - 1) / stages));
            const double least = std::min(left, part * (1 + (stages - 1) / (4 * stages)));
            Gathered work_of(about);
            for_each_work(about, [&](std::uint32_t node, const Work& work) {
              if (work.role == simulate::NodeRole::communicate || work.role == simulate::NodeRole::arrival) return;
              work_of.add(node, work, work.operation == SliceId::none ? "code" : work.trace->name(work.operation),
                          least, left);
            });
            if (!work_of.worth_saying()) return;
            Diagnosis found = work_of.diagnosis(
                {.cause = "communication",
                 .sentence = "The stages of the pipeline wait for each other most of the time",
                 .next = "Cut the batch into more micro batches (4 per stage and more), with a schedule such as 1F1B: "
                         "torch.distributed.pipelining",
                 .doubt = "the gain supposes that the batch can be cut and that small pieces run as well"});
            const auto in_step = std::find_if(first, all.collectives.end(), [](const Collective& one) {
              return is_between_stages(one) && one.step != StepId::none && one.call != SliceId::none;
            });
            if (in_step != all.collectives.end()) {
              found.finding.where = {};
              put_call(about, *in_step, found.finding.where);
            }
            found.finding.where.op = "send";
            // The turns are counted: what is played holds the waits of one schedule.
            found.known_gain = Gain{.speedup_low = 1 / left,
                                    .speedup_high = 1 / least,
                                    .binds = about.now.binds,
                                    .how = "by the turns of a pipeline with one to four micro batches per stage"};
            found.finding.evidence.push_back(
                {.text = "Of its steps the busiest rank computes", .value = part, .unit = Unit::ratio});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
