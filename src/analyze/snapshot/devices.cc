#include <algorithm>

#include "analyze/snapshot/parts.h"
#include "model/answer_parts.h"
#include "snapshot/class_curves.h"
#include "snapshot/curve.h"

namespace stepscope::analyze::device_memory {

using namespace snapshot;

namespace {

constexpr std::size_t kMostClasses = 11;   // in a chart
constexpr std::size_t kMostPieces = 250;   // of a curve
constexpr std::size_t kAllPieces = 4'000;  // of all devices together; of each at least
constexpr std::size_t kLeastPieces = 50;

struct Peak {
  State state;
  LiveBytes live;
  HeldShares shares;
  Value reserved;       // then
  Value most_reserved;  // at any time
};

Table devices_table() {
  return table_of(
      "devices",
      {{"peak_bytes", ValueType::integer, Unit::bytes,
        "Most held at once by allocations that the recording tells of, as the program asked for them"},
       {"static_bytes", ValueType::integer, Unit::bytes,
        "Beside them all the time: blocks that are older than the recording and outlived it"},
       {"unknown_share", ValueType::real, Unit::ratio, "Share of what lives at the peak of which nothing is known"},
       {"peak_event", ValueType::integer, Unit::none,
        "Number of the event that reached it; unknown: before all events"},
       {"peak_t_ns", ValueType::integer, Unit::unix_ns, "When"},
       {"peak_step", ValueType::text, Unit::none, "Step at that time; unknown: steps are not marked, or outside"},
       {"peak_range", ValueType::text, Unit::none, "Innermost range of the program (record_function) at that time"},
       {"peak_block_bytes", ValueType::integer, Unit::bytes,
        "What all that lived then took of the allocator's memory, rounded as it does"},
       {"reserved_bytes", ValueType::integer, Unit::bytes, "What the allocator held from the device then"},
       {"most_reserved_bytes", ValueType::integer, Unit::bytes, "Most that it held at any time"},
       {"end_bytes", ValueType::integer, Unit::bytes, "Alive at the end, static blocks left out"},
       {"ooms", ValueType::integer, Unit::count, "Times when memory ran out"},
       {"events", ValueType::integer, Unit::count, "Events of the device in the recording"},
       {"allocations", ValueType::integer, Unit::count, "Allocations in the recording"},
       {"older", ValueType::integer, Unit::count, "Allocations older than the recording, by their frees and the end"},
       {"unknown_freed_bytes", ValueType::integer, Unit::bytes, "Of these, bytes that were freed in the recording"},
       {"file", ValueType::text, Unit::none, "The file"}});
}

std::pair<std::int64_t, std::int64_t> made_and_older(const View& view) {
  const SnapshotRows rows = view.device->allocations;
  const auto begin = view.history().allocations.begin.span().subspan(rows.first, rows.count);
  const auto older = std::count(begin.begin(), begin.end(), 0u);
  return {static_cast<std::int64_t>(rows.count) - older, older};
}

void add_class_series(Parts& parts, const View& view, const std::vector<std::int64_t>& held, const std::string& where) {
  const std::size_t pieces = std::clamp(kAllPieces / parts.views.size(), kLeastPieces, kMostPieces);
  const ClassCurves curves = class_curves(view.history(), *view.device, held, pieces, kMostClasses);
  for (std::size_t i = 0; i < curves.classes.size(); i++) {
    Series series{.name = "class" + std::to_string(i) + where, .unit = Unit::bytes};
    for (std::size_t m = 0; m < curves.moments.size(); m++) {
      const std::int64_t time = time_of(view.snapshot(), *view.device, curves.moments[m]);
      series.t_ns.push_back(time == kNotRecorded ? 0 : time);
      series.v.push_back(static_cast<double>(curves.classes[i].bytes[m]));
      series.event.push_back(std::int64_t{curves.moments[m]} - 1);
    }
    series.metric = "memory by class, snapshot " + std::to_string(view.number) + " " + view.device_name();
    series.target = curves.classes[i].name;
    series.ranks = {view.trace->rank.rank};
    parts.answer.series.push_back(std::move(series));
  }
}

void add_curves(Parts& parts, const View& view, Peak& peak, std::int64_t& end_bytes) {
  const std::vector<std::int64_t> held = held_by_moment(view.history(), *view.device);
  const std::vector<std::int64_t> reserved = reserved_by_moment(view.history(), *view.device);
  end_bytes = held.back();
  if (!reserved.empty()) {
    peak.reserved = reserved[view.device->peak];
    peak.most_reserved = *std::max_element(reserved.begin(), reserved.end());
  }
  if (view.device->events.count == 0) return;
  const std::string where = "_snapshot" + std::to_string(view.number) + "_" + view.device_name();
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& by_moment) {
    Series series = thinned_by_event(name + where, view.snapshot(), *view.device, by_moment);
    series.metric = "memory";
    series.target = name + " " + view.device_name() +
                    (parts.run.snapshots.size() > 1 ? ", snapshot " + std::to_string(view.number) : std::string());
    series.ranks = {view.trace->rank.rank};
    parts.answer.series.push_back(std::move(series));
  };
  add("held", held);
  if (!reserved.empty()) add("reserved", reserved);
  add_class_series(parts, view, held, where);
}

void add_scalars(Answer& answer, const View& view, const Peak& peak, std::size_t devices, std::uint64_t ooms) {
  const std::string of = devices > 1 ? " on the device with the highest peak" : "";
  add_scalar(answer, "peak_bytes", view.device->peak_bytes, Unit::bytes,
             "Most held at once by allocations that the recording tells of" + of);
  add_scalar(answer, "static_bytes", view.device->static_bytes, Unit::bytes,
             "Held beside them from before the recording to its end" + of);
  add_scalar(answer, "peak_block_bytes", peak.live.blocks, Unit::bytes,
             "What all that lived then took of the allocator's memory, rounded as it does");
  add_scalar(answer, "peak_reserved_bytes", peak.reserved, Unit::bytes,
             std::holds_alternative<std::monostate>(peak.reserved)
                 ? "The file has no segments"
                 : "What the allocator held from the device at that time");
  add_scalar(answer, "unknown_share", share(peak.shares.unknown, peak.shares.bytes), Unit::ratio,
             "Share of what lived at the peak of which nothing is known");
  add_scalar(answer, "uncategorized_share", share(peak.shares.uncategorized, peak.shares.bytes), Unit::ratio,
             "Share without a category; what of it is not unknown has a class by what was compiled, noted or marked");
  add_scalar(answer, "oom_count", count(ooms), Unit::count, "Times when memory ran out, in all snapshots");
}

void say_what_is_missing(Parts& parts, const Peak& largest) {
  const auto none = [&](const auto& is_one) { return std::none_of(parts.views.begin(), parts.views.end(), is_one); };
  if (none([](const View& view) { return view.device->events.count > 0; })) {
    parts.answer.notes.push_back(
        "No events were recorded, so only the end is known, and the peak is that of nothing. Record them: "
        "torch.cuda.memory._record_memory_history(), or stepscope run --memory-history.");
  }
  if (largest.shares.unknown > largest.shares.bytes / 10) {
    parts.answer.notes.push_back(
        "Blocks without a stack, a note or a range around them are unknown. Those older than the recording stay so: "
        "begin it before the model is made; torch's stacks=\"all\" also tells of the backward pass.");
  }
}

}  // namespace

void add_devices(Parts& parts) {
  Table devices = devices_table();
  Holdings at_peak("peak", false, parts.most_rows);
  const View* fullest = nullptr;
  Peak largest;
  std::uint64_t ooms = 0;
  for (const View& view : parts.views) {
    const SnapshotDevice& device = *view.device;
    Peak peak{.state = state_at(view.history(), device, device.peak)};
    peak.live = live_bytes(view.history(), peak.state);
    peak.shares = at_peak.add(view, peak.state, parts.told);
    std::int64_t end_bytes = 0;
    add_curves(parts, view, peak, end_bytes);
    const auto [made, older] = made_and_older(view);
    devices.rows.push_back(
        row_of(view, {device.peak_bytes, device.static_bytes, share(peak.shares.unknown, peak.shares.bytes),
                      moment_event(view, device.peak), moment_time(view, device.peak), moment_step(view, device.peak),
                      moment_range(view, device.peak), peak.live.blocks, peak.reserved, peak.most_reserved, end_bytes,
                      count(device.ooms.size()), count(device.events.count), made, older,
                      device.faults.unknown_freed_bytes, view.trace->source.path}));
    ooms += device.ooms.size();
    if (fullest == nullptr || peak.live.blocks > largest.live.blocks) {
      fullest = &view;
      largest = std::move(peak);
    }
  }
  add_scalars(parts.answer, *fullest, largest, parts.views.size(), ooms);
  parts.answer.tables.push_back(std::move(devices));
  at_peak.take(parts.answer);
  say_what_is_missing(parts, largest);
}

}  // namespace stepscope::analyze::device_memory
