#include "diagnose/loading.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "diagnose/local_ranks.h"
#include "diagnose/queries.h"
#include "diagnose/sampled.h"
#include "model/host_names.h"
#include "model/settings.h"
#include "model/telemetry.h"
#include "simulate/usual_step.h"

namespace stepscope::diagnose {
std::pair<SliceId, LoadsIn> given_in(const Work& work) {
  for (SliceId at = work.slice; at != SliceId::none; at = work.trace->slices.parent[at]) {
    const std::string_view name = work.trace->name(at);
    if (!is_data_loader(name)) continue;
    if (name.find("SingleProcess") != name.npos) return {at, LoadsIn::main_process};
    if (name.find("MultiProcessing") != name.npos) return {at, LoadsIn::workers};
  }
  return {SliceId::none, LoadsIn::unknown};
}

namespace {

// What of the program's own the loader calls; empty: nothing, or no frames are recorded.
Code code_below_loader(const Case& about, const Trace& trace) {
  Code code = about.places.in_ranges(trace, is_data_loader);
  const CodeFrame* own = code.own();
  const auto is_loader = [](const CodeFrame& frame) { return frame.is("torch/utils/data/"); };
  return own != nullptr && std::any_of(std::as_const(code.stack).data(), own, is_loader) ? code : Code();
}

void put_lost_to_workers(const Case& about, Loading& load) {
  constexpr double kMostIdle = 0.25, kLeastBusy = 0.2, kLeastLost = 0.1, kMostLost = 0.7;
  if (!load.idle_cores || *load.idle_cores >= kMostIdle || load.busy_workers.value_or(0) < kLeastBusy) return;
  // Threads of torch that crowd the cores themselves are a cause of their own.
  const std::int64_t ranks = ranks_on_cores(about);
  const auto threads = number_set(about.trace, "torch_threads").value_or(1),
             cores = number_set(about.trace, "cores").value_or(threads);
  const double wanted = static_cast<double>(threads) * static_cast<double>(ranks);
  if (wanted > static_cast<double>(cores)) return;
  const double waits = rate_in_steps(about.run, about.trace.rank.rank, "main_thread_wait").value_or(0);
  const double rest = std::max(0.1, 1 - about.share(load.time_ns));  // while it waits for a batch it wants no core
  const double lost = std::min(waits, *load.busy_workers) / rest;
  if (lost < kLeastLost) return;
  load.lost = load.lost_together = std::min(lost, kMostLost);
  // Workers first take the cores that the threads leave. Each thread has its part of an operator, and all wait for the
  // one whose core was taken, of which the system leaves it half against one worker.
  constexpr double kHalfOfCore = 0.5;
  const double taken = *load.busy_workers * static_cast<double>(ranks) - (static_cast<double>(cores) - wanted);
  const double of_one = std::min(taken, kHalfOfCore);
  if (threads > 1) load.lost_together = std::clamp(std::max(taken / wanted, of_one), load.lost, kMostLost);
}

// Do many of all marked steps wait for them, and not only those in which a pass through the data begins?
bool are_waited_for_often(const Case& about) {
  constexpr double kOften = 0.2, kMuch = 0.5;
  const Trace* history = marks_of_rank(about.run, about.trace.rank.rank);
  if (history == nullptr || history->steps.empty()) return false;
  const std::size_t phase = simulate::uneven_index(static_cast<std::uint8_t>(Phase::dataloader));
  const std::vector<simulate::Uneven> all = simulate::uneven_phases(*history);
  const auto count = static_cast<double>(all.size());
  double sum_ns = 0;
  for (const simulate::Uneven& one : all) sum_ns += one[phase];
  const auto waiting = static_cast<double>(std::count_if(
      all.begin(), all.end(), [&](const simulate::Uneven& one) { return one[phase] > kMuch * sum_ns / count; }));
  return waiting >= kOften * count;
}

// Were the workers ahead while the job was recorded, as they are behind what held it up, and usual steps wait for them?
// What they did then says nothing of these.
bool were_ahead(const Case& about, const Loading& load) {
  if (!are_waited_for_often(about)) return false;
  constexpr double kFarLonger = 2, kLeastShare = 0.1;
  double recorded_ns = 0, usual_ns = 0;
  for (const std::uint32_t node : load.nodes) {
    recorded_ns += static_cast<double>(about.predictor.graph().costs.cost_ns[node]);
    usual_ns += static_cast<double>(about.cost_ns(node));
  }
  return about.share(load.time_ns) >= kLeastShare && usual_ns > kFarLonger * recorded_ns;
}

// By what a batch takes a worker they make far more of them than usual steps ask for. Where these wait long all the
// same, batches of later steps may take longer.
bool make_in_time(const Case& about, std::int64_t time_ns, std::size_t batches) {
  constexpr double kFarLess = 0.6, kLong = 0.25;
  if (about.share(time_ns) >= kLong) return false;
  const auto batch_ns = number_set(about.trace, "loader_batch_ns"), workers = number_set(about.trace, "loader_workers");
  if (batch_ns.value_or(0) <= 0 || workers.value_or(0) <= 0 || batches == 0) return false;
  const double making_ns =
      static_cast<double>(*batch_ns) * static_cast<double>(batches) / static_cast<double>(*workers);
  return making_ns < kFarLess * static_cast<double>(about.path_ns - time_ns);
}

Loading look_at_loading(const Case& about) {
  Loading out{.idle_cores = idle_cores(about.run)};
  std::set<SliceId> batches;  // that workers make, of the rank that takes longest
  std::int64_t longest_ns = 0;
  for (std::uint32_t node = 0; node < about.size(); node++) {
    if (!about.is_work(node)) continue;
    const Work work = about.work(node);
    if (work.role != simulate::NodeRole::data_loader) continue;
    out.nodes.push_back(node);
    out.time_ns += about.on_path(node);
    const auto [range, where] = given_in(work);
    if (where == LoadsIn::workers && work.trace == &about.trace) batches.insert(range);
    if (out.where == LoadsIn::unknown) out.where = where;
    if (out.longest == simulate::kNone || work.cost_ns > about.work(out.longest).cost_ns) out.longest = node;
    if (work.cost_ns <= longest_ns) continue;
    Code code = about.code(work);
    if (code.own() == nullptr) continue;
    longest_ns = work.cost_ns;
    out.code = std::move(code);
  }
  if (!were_ahead(about, out)) {
    out.ready = batches_ready(about.trace);
    out.keeps_up = workers_keep_up(about.trace);
  } else {
    out.makes_in_time = make_in_time(about, out.time_ns, batches.size());
  }
  if (out.longest != simulate::kNone) out.making = code_below_loader(about, *about.work(out.longest).trace);
  if (out.longest != simulate::kNone && out.code.below("__next__") == nullptr) {
    const CodeCall* loop = about.places.source(*about.work(out.longest).trace).loop_around(out.code);
    if (loop != nullptr) out.code.call_line = loop->line;
  }
  const auto busy = rate_in_steps(about.run, about.trace.rank.rank, "cpu_time");
  const auto count = number_set(about.trace, "loader_workers");
  const auto making = loader_busy(about.trace), on_core = ratio_set(about.trace, "loader_cpu_permille");
  if (count && making && on_core && out.idle_cores) {
    constexpr double kOften = 0.2;
    constexpr double kMostlyWaits = 0.5;  // for files or a network: as many again need no cores
    // Who is waited for makes batches. Where that is more than was measured, the job was held up meanwhile: who is
    // waited for again and again has no rest.
    const double waits = about.share(out.time_ns);
    const bool is_limit =
        waits >= kOften && waits > *making && !keeps_up(out) && !out.makes_in_time && are_waited_for_often(about);
    const double busy_part = is_limit ? 1 : out.makes_in_time ? *making : std::max(*making, waits);
    const double workers = std::max(0.05, static_cast<double>(*count) * busy_part * *on_core);
    out.busy_workers = workers;
    out.waiting_workers = *on_core < kMostlyWaits;
    out.room = (workers + *out.idle_cores) / workers;
  } else if (busy && out.idle_cores) {
    // What the rank keeps busy beside its own threads, which rest while it waits, are the workers.
    const double working = 1 - std::min(1.0, about.share(out.time_ns));
    const auto threads = static_cast<double>(number_set(about.trace, "torch_threads").value_or(1));
    const double workers = std::max(0.05, *busy - working * threads);
    out.busy_workers = workers;
    out.room = (workers + *out.idle_cores) / workers;
  }
  if (out.where == LoadsIn::workers) put_lost_to_workers(about, out);
  return out;
}

}  // namespace

const Loading& loading(const Case& about) { return about.shared<Loading>(look_at_loading); }

std::optional<double> idle_cores_of_rank(const Case& about, const Loading& loading) {
  if (!loading.idle_cores || !std::isfinite(*loading.idle_cores)) return std::nullopt;
  const std::int64_t ranks = local_ranks(about);
  return *loading.idle_cores / static_cast<double>(ranks);
}

bool keeps_up(const Loading& loading) {
  if (loading.keeps_up) return *loading.keeps_up;
  constexpr double kNearlyAll = 0.9, kRests = 0.5;
  return loading.ready.value_or(0) >= kNearlyAll && loading.busy_workers.value_or(1) < kRests;
}

bool has_room(const Loading& loading) {
  constexpr double kRoom = 2, kLeastIdle = 0.25;  // of a core: less is no place for another worker
  if (loading.waiting_workers) return true;
  if (loading.idle_cores.value_or(1) < kLeastIdle) return false;
  return loading.room ? *loading.room >= kRoom : loading.idle_cores.value_or(0) >= kIdleCore;
}

Diagnosis waits_for_loader(const Case& about, const Loading& loading, std::string sentence, std::string next,
                           double least, double most) {
  Diagnosis found;
  for (const std::uint32_t node : loading.nodes) {
    const auto cost = static_cast<double>(about.cost_ns(node));
    found.rewrite.nodes.push_back(
        {node, static_cast<std::int64_t>(least * cost), static_cast<std::int64_t>(most * cost)});
  }
  Finding& finding = found.finding;
  found.is_by_marks = true;
  finding.cause = "input";
  finding.sentence = std::move(sentence);
  finding.where.phase = "dataloader";
  if (!loading.nodes.empty()) about.put_place(about.work(loading.longest), loading.code, finding.where);
  finding.evidence = {{.text = "Of the steps", .value = about.share(loading.time_ns), .unit = Unit::ratio},
                      {.text = "Per step", .value = loading.time_ns / about.steps, .unit = Unit::ns}};
  if (loading.idle_cores)
    finding.evidence.push_back(
        {.text = "Idle cores of the machine", .value = *loading.idle_cores, .query = samples_of("cpu_idle")});
  if (loading.ready) {
    finding.evidence.push_back({.text = "Batches that were there when asked for",
                                .value = *loading.ready,
                                .unit = Unit::ratio,
                                .query = setting_of("batches_ready_permille")});
  }
  put_doubt(finding, "");
  finding.next = std::move(next);
  return found;
}

bool put_where_it_is_made(const Case& about, const Loading& loading, Place& where) {
  if (loading.nodes.empty()) return false;
  const CodeCall* makes = about.places.source(*about.work(loading.longest).trace).only_call("(workers)");
  if (makes != nullptr) put_call(*makes, where);
  return makes != nullptr;
}

}  // namespace stepscope::diagnose
