#include "session/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/answer_parts.h"
#include "model/collective_work.h"
#include "session/changes.h"
#include "session/report_inputs.h"
#include "session/what_if_candidates.h"
#include "simulate/predict.h"
#include "simulate/unexplained.h"

namespace stepscope::session {
namespace {

using simulate::kNone;
using simulate::NodeRole;
using simulate::Prediction;
using simulate::Predictor;

constexpr std::size_t kPathRows = 40;
constexpr std::size_t kNamesTold = 3;

std::string_view to_string(NodeRole role) {
  constexpr std::array<std::string_view, 7> names{"host",          "data loader",   "launch", "device",
                                                  "communication", "communication", "meeting"};
  return names[static_cast<std::size_t>(role)];
}

Table changes_table(const Prediction& made, std::span<const Change> changes) {
  Table table{.name = "changes",
              .columns = {{"change", ValueType::text, Unit::none, "What was changed"},
                          {"calls", ValueType::integer, Unit::count,
                           "Calls on the host, or pieces of device work, that it is about"},
                          {"host_ns", ValueType::integer, Unit::ns, "Their time on the host as recorded"},
                          {"device_ns", ValueType::integer, Unit::ns, "Their time on the device as recorded"},
                          {"names", ValueType::text, Unit::none, "What was meant; the first names"}}};
  for (std::size_t i = 0; i < changes.size(); i++) {
    const simulate::Applied& applied = made.applied[i];
    std::string names;
    for (std::size_t k = 0; k < std::min(applied.names.size(), kNamesTold); k++) {
      names += (k == 0 ? "" : ", ") + applied.names[k];
    }
    if (applied.names.size() > kNamesTold) names += fmt::format(" and {} more", applied.names.size() - kNamesTold);
    table.rows.push_back(
        {change_text(changes[i]), count(applied.calls), applied.host_ns, applied.device_ns, text(names)});
  }
  return table;
}

Table lanes_table(const Predictor& predictor, const std::vector<simulate::LaneWaits>& waits) {
  Table table{
      .name = "lanes",
      .columns = {{"lane", ValueType::text, Unit::none, "Thread or stream"},
                  {"nodes", ValueType::integer, Unit::count, "Pieces of work, gaps that count as work included"},
                  {"busy_ns", ValueType::integer, Unit::ns, "Their time in the steps"},
                  {"unexplained_ns", ValueType::integer, Unit::ns,
                   "Waits in the steps that nothing in the recording explains; unknown where the lane waits for "
                   "nobody and its gaps count as its own work"},
                  {"unexplained_share", ValueType::real, Unit::ratio, "Share of the steps"},
                  {"longest_ns", ValueType::integer, Unit::ns, "The longest of these waits"}}};
  for (const simulate::LaneWaits& lane : waits) {
    const bool waits_at_all = predictor.graph().lanes[lane.lane].waits;
    table.rows.push_back({predictor.lane_name(lane.lane), count(lane.nodes), lane.busy_ns,
                          waits_at_all ? Value(lane.unexplained_ns) : Value(),
                          waits_at_all ? share(lane.unexplained_ns, lane.window_ns) : Value(),
                          waits_at_all ? Value(lane.longest_ns) : Value()});
  }
  return table;
}

Table evidence_table(const simulate::ReplayGraph& graph) {
  std::array<std::int64_t, kWaitEvidences> counts{};
  for (const simulate::Edge& edge : graph.edges) counts[static_cast<std::size_t>(edge.why)]++;
  for (std::uint32_t node = 0; node < graph.size(); node++) {
    if (graph.costs.before[node] == kNone) continue;
    const bool device = graph.lanes[graph.lane[node]].device;
    counts[static_cast<std::size_t>(device ? WaitEvidence::stream_order : WaitEvidence::program_order)]++;
  }
  Table table{
      .name = "evidence",
      .columns = {{"evidence", ValueType::text, Unit::none, "How the recording shows that one waited for another"},
                  {"edges", ValueType::integer, Unit::count, "Edges of the graph that rest on it"},
                  {"meaning", ValueType::text, Unit::none, "What it means"}}};
  for (std::size_t i = 0; i < kWaitEvidences; i++) {
    const auto evidence = static_cast<WaitEvidence>(i);
    if (counts[i] == 0) continue;
    table.rows.push_back({std::string(stepscope::to_string(evidence)), counts[i], std::string(meaning_of(evidence))});
  }
  return table;
}

Table path_table(const Predictor& predictor, const Prediction& made) {
  Table table{.name = "path",
              .columns = {{"lane", ValueType::text, Unit::none, "Thread or stream"},
                          {"what", ValueType::text, Unit::none, "Work, or the way to it from what came before"},
                          {"name", ValueType::text, Unit::none, "What ran"},
                          {"time_ns", ValueType::integer, Unit::ns, "Time on the path that bounds the predicted steps"},
                          {"share", ValueType::real, Unit::ratio, "Share of the path"}}};
  for (const simulate::PathPart& part : made.path) {
    const std::string what =
        part.handed_over ? "way to " + std::string(to_string(part.role)) : std::string(to_string(part.role));
    table.rows.push_back(
        {predictor.lane_name(part.lane), what, text(part.name), part.time_ns, share(part.time_ns, made.path_ns)});
  }
  return table;
}

Table communication_table(const std::vector<simulate::CommModel>& models) {
  Table table{.name = "communication",
              .columns = {{"kind", ValueType::text, Unit::none, "Kind of collective"},
                          {"group_size", ValueType::integer, Unit::count, "Ranks of the group; unknown: not recorded"},
                          {"calls", ValueType::integer, Unit::count, "Transfers"},
                          {"sizes", ValueType::integer, Unit::count, "Distinct numbers of bytes among them"},
                          {"latency_ns", ValueType::integer, Unit::ns,
                           "Fitted time that does not grow with the bytes; unknown below two sizes"},
                          {"bandwidth", ValueType::real, Unit::gb_per_s, "Fitted bytes over the time that does"},
                          {"residual", ValueType::real, Unit::ratio, "Median distance of a transfer from the fit"},
                          {"met", ValueType::boolean, Unit::none,
                           "Its ranks were all seen: without, the times hold the wait for the others"}}};
  for (const simulate::CommModel& model : models) {
    const bool slope = model.ns_per_byte && *model.ns_per_byte > 0;
    table.rows.push_back({std::string(stepscope::to_string(model.kind)),
                          model.group_size > 0 ? Value(model.group_size) : Value(), count(model.nodes.size()),
                          model.sizes, model.parted ? Value(static_cast<std::int64_t>(model.latency_ns)) : Value(),
                          slope ? Value(1 / *model.ns_per_byte) : Value(),
                          model.residual ? Value(*model.residual) : Value(), model.met});
  }
  return table;
}

void add_scalars(Answer& answer, const Predictor& predictor, const Prediction& made, bool changed,
                 std::optional<double> unexplained) {
  const bool steps = std::all_of(predictor.windows().begin(), predictor.windows().end(),
                                 [](const simulate::StepWindow& window) { return window.whole_steps; });
  add_scalar(answer, "step_ns", made.now_ns, Unit::ns,
             steps ? "Mean step as recorded, of the rank that takes longest"
                   : "Length of the recording: it has no whole step on every rank");
  if (changed) {
    add_scalar(answer, "predicted_low_ns", made.after_ns[0], Unit::ns,
               "The same with the changes, the shorter end of the range");
    add_scalar(answer, "predicted_high_ns", made.after_ns[1], Unit::ns,
               "The longer end: waits that nothing explains stay or go");
    add_scalar(answer, "speedup_low", made.speedup_low, Unit::none, "Step time before over after, the lower end");
    add_scalar(answer, "speedup_high", made.speedup_high, Unit::none, "The upper end");
  }
  add_scalar(answer, "binds", text(made.binds), Unit::none,
             changed ? "What bounds the steps then: it has most of the path" : "What bounds the steps");
  add_scalar(answer, "binds_share", made.path_ns > 0 ? Value(made.binds_share) : Value(), Unit::ratio,
             "Its share of the path");
  add_scalar(answer, "unexplained_share", to_value(unexplained), Unit::ratio,
             unexplained ? "Waits in the steps that nothing in the recording explains, per rank"
                         : "No lane waits for another: every gap counts as work of its thread");
  add_scalar(answer, "nodes", count(predictor.graph().size()), Unit::count, "Pieces of work in the graph");
  add_scalar(answer, "against_time", count(predictor.graph().against_time), Unit::count,
             "Waits left out since they led back in time: clocks that disagree");
}

// Threads beside that of the steps that nothing recorded ties to another: no change reaches them.
void note_untied(Answer& answer, const Run& run, const Predictor& predictor,
                 const std::vector<simulate::LaneWaits>& waits) {
  std::vector<std::uint32_t> untied;
  for (const simulate::LaneWaits& lane : waits) {
    const simulate::Lane& thread = predictor.graph().lanes[lane.lane];
    const std::vector<Step>& steps = run.traces[thread.trace].steps;
    const bool has_steps =
        std::any_of(steps.begin(), steps.end(), [&](const Step& s) { return s.track == thread.track; });
    if (!thread.device && !thread.waits && !steps.empty() && !has_steps) untied.push_back(lane.lane);
  }
  if (untied.empty()) return;
  std::string names = predictor.lane_name(untied.front());
  if (untied.size() > 1) names += fmt::format(" and {} more threads", untied.size() - 1);
  answer.notes.push_back(names + (untied.size() > 1 ? " are" : " is") +
                         " tied to no other thread by what was recorded: in the prediction " +
                         (untied.size() > 1 ? "they stay" : "it stays") + " at the recorded times.");
}

Result<Answer> make_answer(const Run& run, std::span<const Change> changes) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  const Predictor predictor(run);
  if (!predictor.can_play()) {
    return fail({ErrorKind::unsupported, "nothing that ran was recorded, so nothing can be played again", run.path,
                 std::nullopt, "Give a timeline: record with stepscope run, torch.profiler or nsys"});
  }
  const Result<Prediction> made = predictor.predict(changes);
  if (!made) return fail(made.error());
  const std::vector<simulate::LaneWaits> waits = simulate::unexplained_waits(predictor.graph(), predictor.windows());
  Answer answer;
  add_scalars(answer, predictor, *made, !changes.empty(), simulate::unexplained_share(predictor.graph(), waits));
  answer.tables.push_back(changes.empty() ? candidates_table(run, predictor) : changes_table(*made, changes));
  answer.tables.push_back(path_table(predictor, *made));
  limit_rows(answer, answer.tables.back(), kPathRows, "those with less time on the path");
  answer.tables.push_back(lanes_table(predictor, waits));
  answer.tables.push_back(evidence_table(predictor.graph()));
  if (Table models = communication_table(predictor.models()); !models.rows.empty()) {
    answer.tables.push_back(std::move(models));
  }
  if (!changes.empty()) note_untied(answer, run, predictor, waits);
  for (const simulate::Applied& applied : made->applied) {
    answer.notes.insert(answer.notes.end(), applied.notes.begin(), applied.notes.end());
  }
  return answer;
}

}  // namespace

Result<Report> what_if(const Run& run, std::span<const Change> changes) {
  Result<Answer> answer =
      titled(make_answer(run, changes), "what_if",
             changes.empty() ? "What bounds the steps, what would common changes be worth, and how well is that known?"
                             : "What would the changes be worth?");
  if (!answer) return fail(answer.error());
  Report report{.path = run.path};
  add_inputs(report, run);
  report.answers.push_back(*std::move(answer));
  return report;
}

Result<void> become_predicted(Run& run, std::span<const Change> changes) {
  const Predictor predictor(run);
  if (!predictor.can_play()) return {};
  const Result<Prediction> made = predictor.predict(changes);
  if (!made) return fail(made.error());
  simulate::move_to(run, predictor.graph(), made->costs, made->played);
  return {};
}

}  // namespace stepscope::session
