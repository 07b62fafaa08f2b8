#include <algorithm>

#include "analyze/snapshot/parts.h"
#include "model/answer_parts.h"
#include "snapshot/byte_sums.h"
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
  Value reserved;           // then
  Value most_reserved;      // at any time
  std::size_t misfits = 0;  // moments when by the events more lived than the segments held
};

Table devices_table() {
  return table_of(
      "devices",
      {{"peak_bytes", ValueType::integer, Unit::bytes,
        "Most held at once by allocations that the recording tells of, as the program asked for them; unknown: no "
        "events were recorded"},
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
       {"reserved_bytes", ValueType::integer, Unit::bytes,
        "What the allocator held from the device then; unknown: by the events more lived than that"},
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

// The curves stand beside each other where the segments of the file can hold what lived by its events.
void take_reserved(const View& view, const std::vector<std::int64_t>& held, const std::vector<std::int64_t>& reserved,
                   Peak& peak) {
  if (reserved.empty()) return;
  const auto fits = [&](std::size_t moment) {
    return plus(held[moment], view.device->static_bytes) <= reserved[moment];
  };
  for (std::size_t moment = 0; moment < held.size(); moment++) peak.misfits += fits(moment) ? 0 : 1;
  if (fits(view.device->peak)) peak.reserved = reserved[view.device->peak];
  if (peak.misfits == 0) peak.most_reserved = *std::max_element(reserved.begin(), reserved.end());
}

void add_curves(Parts& parts, const View& view, Peak& peak, std::int64_t& end_bytes) {
  const std::vector<std::int64_t> held = held_by_moment(view.history(), *view.device);
  const std::vector<std::int64_t> reserved = reserved_by_moment(view.history(), *view.device);
  end_bytes = held.back();
  if (view.device->events.count == 0) return;
  take_reserved(view, held, reserved, peak);
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
  if (!reserved.empty() && peak.misfits == 0) add("reserved", reserved);
  add_class_series(parts, view, held, where);
}

std::string reserved_words(const View& view, const Peak& peak) {
  if (view.device->ranges.count == 0) return "The file has no segments";
  return std::holds_alternative<std::monostate>(peak.reserved)
             ? "By the events more lived then than the segments of the file held"
             : "What the allocator held from the device at that time";
}

void add_scalars(Answer& answer, const View& view, const Peak& peak, std::size_t devices, std::uint64_t ooms) {
  const std::string of = devices > 1 ? " on the device with the highest peak" : "";
  const bool recorded = view.device->events.count > 0;
  const std::string unrecorded = "No events were recorded" + of;
  add_scalar(answer, "peak_bytes", value_if(recorded, view.device->peak_bytes), Unit::bytes,
             recorded ? "Most held at once by allocations that the recording tells of" + of : unrecorded);
  add_scalar(answer, "static_bytes", view.device->static_bytes, Unit::bytes,
             "Held beside them from before the recording to its end" + of);
  add_scalar(answer, "peak_block_bytes", value_if(recorded, peak.live.blocks), Unit::bytes,
             recorded ? "What all that lived then took of the allocator's memory, rounded as it does" : unrecorded);
  add_scalar(answer, "peak_reserved_bytes", peak.reserved, Unit::bytes,
             recorded ? reserved_words(view, peak) : unrecorded);
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
        "No events were recorded, so the peak is unknown, and tables of the peak tell what lives at the end. Record "
        "them: "
        "torch.cuda.memory._record_memory_history(), or stepscope run --memory-history.");
  }
  if (largest.shares.unknown > largest.shares.bytes / 10) {
    parts.answer.notes.push_back(
        "Blocks without a stack, a note or a range around them are unknown. Those older than the recording stay so: "
        "begin it before the model is made; torch's stacks=\"all\" also tells of the backward pass.");
  }
}

// Devices whose segments and events do not fit together.
struct Misfits {
  std::string first;
  std::size_t devices = 0;

  void add(const View& view, std::size_t moments) {
    if (devices++ > 0) return;
    first = "rank " + std::to_string(view.trace->rank.rank) + " " + view.device_name() + ", after " +
            std::to_string(moments) + " of " + std::to_string(view.device->events.count) + " events";
  }
  void tell(Answer& answer) const {
    if (devices == 0) return;
    answer.notes.push_back("The segments and the events of the file do not fit together: on " + first +
                           ", more lived by the events than the segments held" +
                           (devices > 1 ? ", and so on " + std::to_string(devices - 1) + " more devices" : "") +
                           ". What was reserved and free then is unknown.");
  }
};

}  // namespace

void add_devices(Parts& parts) {
  Table devices = devices_table();
  Holdings at_peak("peak", false, parts.most_rows);
  const View* fullest = nullptr;
  Peak largest;
  Misfits misfits;
  std::uint64_t ooms = 0;
  for (const View& view : parts.views) {
    const SnapshotDevice& device = *view.device;
    Peak peak{.state = state_at(view.history(), device, device.peak)};
    peak.live = live_bytes(view.history(), peak.state);
    peak.shares = at_peak.add(view, peak.state, parts.told);
    std::int64_t end_bytes = 0;
    add_curves(parts, view, peak, end_bytes);
    if (peak.misfits > 0) misfits.add(view, peak.misfits);
    const bool recorded = device.events.count > 0;
    const auto [made, older] = made_and_older(view);
    devices.rows.push_back(row_of(
        view,
        {value_if(recorded, device.peak_bytes), device.static_bytes, share(peak.shares.unknown, peak.shares.bytes),
         moment_event(view, device.peak), moment_time(view, device.peak), moment_step(view, device.peak),
         moment_range(view, device.peak), value_if(recorded, peak.live.blocks), peak.reserved, peak.most_reserved,
         end_bytes, count(device.ooms.size()), count(device.events.count), made, older,
         device.faults.unknown_freed_bytes, view.trace->source.path}));
    ooms += device.ooms.size();
    // What has events tells of a peak.
    const auto fuller = [&] {
      const bool other = fullest->device->events.count > 0;
      return recorded == other ? peak.live.blocks > largest.live.blocks : recorded;
    };
    if (fullest == nullptr || fuller()) {
      fullest = &view;
      largest = std::move(peak);
    }
  }
  add_scalars(parts.answer, *fullest, largest, parts.views.size(), ooms);
  parts.answer.tables.push_back(std::move(devices));
  at_peak.take(parts.answer);
  misfits.tell(parts.answer);
  say_what_is_missing(parts, largest);
}

}  // namespace stepscope::analyze::device_memory
