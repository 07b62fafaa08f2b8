// Runs made from a recorded one, for tests of the difference: its steps drawn anew and put one after another, every
// stretch of a step a little faster or slower, and on demand one operator slower. Not part of the program.
//
// Time is bent, never cut: all events of a step are moved by one increasing function of time, so that launches, waits
// and threads keep their order.
#pragma once

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

#include "base/intervals.h"
#include "derive/derive.h"
#include "model/trace_fixture.h"
#include "model/windows.h"

namespace stepscope::diff {

inline constexpr std::size_t kAllSteps = 0xffffffff;

struct Recipe {
  std::uint64_t seed = 1;
  std::size_t steps = 12;
  std::size_t only = kAllSteps;  // draw this recorded step only
  double jitter = 0.01;          // deviation of the speed of a step, and of a stretch in it
  std::string_view slowed;       // an operator …
  double slowdown = 0;           // … of which every call takes so much more, as a share
};

class Resampler {
 public:
  explicit Resampler(const Trace& trace) : trace_(trace) {
    const std::vector<Interval> walls = step_walls(trace);
    for (std::size_t i = 0; i < walls.size(); i++) {
      if (!trace.steps[i].partial) windows_.push_back({trace.steps[i].start_ns, walls[i].end});
    }
    events_ = events_of_windows();
  }

  std::size_t steps() const { return windows_.size(); }

  // Union of the calls of an operator in a recorded step.
  std::int64_t time_of(std::string_view op, std::size_t step) const { return length(calls_in(op, windows_[step])); }
  std::int64_t length_of(std::size_t step) const { return windows_[step].end - windows_[step].start; }

  Run run(const Recipe& recipe) const {
    std::mt19937_64 random(recipe.seed);
    Copy copy{trace_};
    std::int64_t at = 1'000'000;
    std::vector<std::size_t> drawn;  // every recorded step as often, in any order
    for (std::size_t i = 0; i < recipe.steps; i++)
      drawn.push_back(recipe.only == kAllSteps ? i % windows_.size() : recipe.only);
    std::shuffle(drawn.begin(), drawn.end(), random);
    for (std::size_t i = 0; i < recipe.steps; i++) {
      const Interval window = windows_[drawn[i]];
      const Bend bend(window, recipe.slowdown > 0 ? calls_in(recipe.slowed, window) : Intervals{}, recipe, random);
      copy_step(copy, events_[drawn[i]], bend, at, static_cast<std::int64_t>(i));
      at += bend(window.end) + 1'000;
    }
    Run run;
    run.path = "resampled";
    if (!derive::derive(copy.fixture.trace, {})) return run;
    run.traces.push_back(std::move(copy.fixture.trace));
    return run;
  }

 private:
  // From time of the recording to time since the start of the new step.
  class Bend {
   public:
    Bend(Interval window, const Intervals& slowed, const Recipe& recipe, std::mt19937_64& random) {
      constexpr int kStretches = 32;
      std::normal_distribution<double> noise(0, recipe.jitter);
      std::vector<std::int64_t> borders{window.start, window.end};
      for (int i = 1; i < kStretches; i++)
        borders.push_back(window.start + (window.end - window.start) * i / kStretches);
      for (const Interval& call : slowed) {
        borders.push_back(call.start);
        borders.push_back(call.end);
      }
      std::sort(borders.begin(), borders.end());
      const double speed = std::max(0.5, 1 + noise(random));  // of the whole step
      double to = 0;
      for (std::size_t i = 0; i < borders.size(); i++) {
        knots_.push_back({borders[i], to});
        if (i + 1 == borders.size()) break;
        const std::int64_t span = borders[i + 1] - borders[i];
        const bool slow = shared_length(slowed, Intervals{{borders[i], borders[i + 1]}}) > 0;
        to += static_cast<double>(span) * speed * std::max(0.5, 1 + noise(random)) * (slow ? 1 + recipe.slowdown : 1);
      }
    }
    std::int64_t operator()(std::int64_t time_ns) const {
      auto after = std::upper_bound(knots_.begin(), knots_.end(), time_ns,
                                    [](std::int64_t time, const Knot& knot) { return time < knot.from; });
      if (after == knots_.begin()) return 0;
      const Knot& low = *(after - 1);
      if (after == knots_.end()) return static_cast<std::int64_t>(low.to) + time_ns - low.from;
      const double part = static_cast<double>(time_ns - low.from) / static_cast<double>(after->from - low.from);
      return static_cast<std::int64_t>(low.to + (after->to - low.to) * part);
    }

   private:
    struct Knot {
      std::int64_t from;
      double to;
    };
    std::vector<Knot> knots_;
  };

  struct Copy {
    explicit Copy(const Trace& from) {
      for (const Track& track : from.tracks) {
        const auto word = [&](StringId id) { return id == StringId::none ? "" : from.strings[id]; };
        const std::string_view process = word(track.process), thread = word(track.thread);
        track.device ? fixture.stream(thread, process) : fixture.host(thread, process);
      }
    }
    TraceFixture fixture;
  };

  Intervals calls_in(std::string_view op, Interval window) const {
    std::vector<Interval> calls;
    for (std::uint32_t i = 0; i < trace_.slices.size(); i++) {
      const auto id = static_cast<SliceId>(i);
      if (trace_.name(id) != op || trace_.kind(id) != SliceKind::cpu_op) continue;
      const std::int64_t start = trace_.slices.start_ns[id];
      if (start >= window.start && start < window.end)
        calls.push_back({start, std::min(trace_.slices.end_ns(id), window.end)});
    }
    return make_intervals(std::move(calls));
  }

  // A slice of a step, and its row in the table of what it is, if there is one.
  struct Event {
    SliceId slice;
    enum class Table { slices, ops, launches, device } table = Table::slices;
    std::size_t row = 0;
  };

  std::vector<std::vector<Event>> events_of_windows() const {
    std::vector<std::vector<Event>> events(windows_.size());
    std::size_t op = 0, launch = 0, device = 0;
    for (std::uint32_t i = 0; i < trace_.slices.size(); i++) {
      Event event{static_cast<SliceId>(i)};
      const auto is_of = [&](const auto& rows, std::size_t& at, Event::Table table) {
        while (at < rows.size() && rows.slice[at] < event.slice) at++;
        if (at == rows.size() || rows.slice[at] != event.slice) return false;
        event.table = table;
        event.row = at;
        return true;
      };
      if (!is_of(trace_.ops, op, Event::Table::ops) && !is_of(trace_.launches, launch, Event::Table::launches))
        is_of(trace_.device, device, Event::Table::device);
      const std::int64_t start = trace_.slices.start_ns[event.slice];
      for (std::size_t step = 0; step < windows_.size(); step++)
        if (start >= windows_[step].start && start < windows_[step].end) events[step].push_back(event);
    }
    return events;
  }

  void copy_step(Copy& copy, const std::vector<Event>& events, const Bend& bend, std::int64_t at,
                 std::int64_t number) const {
    TraceFixture& f = copy.fixture;
    const std::int64_t shift = (number + 1) << 32;  // ids of one step are not those of another
    const auto shifted = [&](std::int64_t id) { return id > 0 ? id + shift : id; };
    for (const auto& [id, table, row] : events) {
      const std::int64_t from = bend(trace_.slices.start_ns[id]), dur = bend(trace_.slices.end_ns(id)) - from;
      const CategoryId category = trace_.slices.category[id];
      const std::string_view kind = category == CategoryId::none
                                        ? ""
                                        : trace_.strings[trace_.categories[static_cast<std::size_t>(category)].name];
      const TrackId track = trace_.slices.track[id];
      std::string name(trace_.name(id));
      if (name.starts_with("ProfilerStep#")) name = "ProfilerStep#" + std::to_string(number);
      switch (table) {
        case Event::Table::slices: f.slice(track, kind, name, at + from, dur); break;
        case Event::Table::ops:
          f.op(track, name, at + from, dur,
               {shifted(trace_.ops.external_id[row]), shifted(trace_.ops.sequence[row]), trace_.ops.fwd_thread[row]},
               kind);
          break;
        case Event::Table::launches:
          f.launch(track, name, at + from, dur, shifted(trace_.launches.correlation[row]));
          break;
        case Event::Table::device:
          f.device(track, kind, name, at + from, dur, shifted(trace_.device.correlation[row]));
          break;
      }
    }
  }

  const Trace& trace_;
  std::vector<Interval> windows_;
  std::vector<std::vector<Event>> events_;  // of each window, in the order of the trace
};

}  // namespace stepscope::diff
