#include "serve/scene.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "model/track_stacks.h"
#include "model/windows.h"
#include "serve/scene_parts.h"
#include "serve/trace_file.h"

namespace stepscope::serve {
namespace {

using report::JsonWriter;
using timeline::Rect;
constexpr std::uint32_t kMagic = 0x31545353;  // "SST1"
constexpr double kLabelPixels = 24;           // narrower rectangles carry no name
constexpr std::size_t kMostSums = 200;
constexpr std::size_t kMostCounters = 1000;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool holds(std::string_view text, std::string_view wanted) {  // `wanted` in lower case
  return std::search(text.begin(), text.end(), wanted.begin(), wanted.end(),
                     [](char a, char b) { return lower(a) == b; }) != text.end();
}

// Appends columns of fixed width, each from an offset that 8 divides.
class Columns {
 public:
  template <class T>
  void add(const T& value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void pad() { bytes_.resize((bytes_.size() + 7) / 8 * 8); }
  void text(std::string_view text) { bytes_.append(text); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

struct Sum {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0, self_ns = 0;
  timeline::RectClass kind = timeline::RectClass::other;
};

}  // namespace

Scene::Scene(const OpenedRun& run)
    : run_(run.run()),
      predicted_from_(run.predicted_from()),
      pyramids_(run.pyramids()),
      paths_(pyramids_.size()),
      phases_(pyramids_.size()) {
  std::uint32_t names = 0;
  origin_ns_ = INT64_MAX;
  end_ns_ = INT64_MIN;
  for (std::size_t rank = 0; rank < pyramids_.size(); rank++) {
    const timeline::Pyramid& one = pyramid(rank);
    first_lane_.push_back(static_cast<std::uint32_t>(places_.size()));
    first_name_.push_back(names);
    names += static_cast<std::uint32_t>(one.trace().strings.size());
    for (std::size_t lane = 0; lane < one.lanes().size(); lane++) places_.push_back({rank, lane});
    if (one.end_ns() == one.start_ns()) continue;  // nothing ran
    origin_ns_ = std::min(origin_ns_, run_time_ns(one.trace(), one.start_ns()));
    end_ns_ = std::max(end_ns_, run_time_ns(one.trace(), one.end_ns()));
  }
  if (end_ns_ < origin_ns_) origin_ns_ = end_ns_ = 0;
  counters_ = timeline::counter_curves(run_, pyramids_, kMostCounters, counters_left_out_);
}

std::int64_t Scene::after_origin(std::size_t rank, std::int64_t time_ns) const {
  return run_time_ns(pyramid(rank).trace(), time_ns) - origin_ns_;
}

constexpr std::int64_t kFar = std::int64_t{1} << 61;  // as far as times may be apart without running over

std::int64_t Scene::on_run_clock(std::int64_t after_origin_ns) const {
  return std::clamp(after_origin_ns, -kFar, kFar) + std::clamp(origin_ns_, -kFar, kFar);
}

// The clock of a file runs as fast as the run's but for a millionth or so: one correction leaves less than a ns.
std::int64_t Scene::in_file(std::size_t rank, std::int64_t after_origin_ns) const {
  const Trace& trace = pyramid(rank).trace();
  const std::int64_t wanted = on_run_clock(after_origin_ns);
  const std::int64_t time = wanted - std::clamp(trace.clock.offset_ns, -kFar, kFar);
  return time - (run_time_ns(trace, time) - wanted);
}

std::int64_t Scene::length(std::size_t rank, std::int64_t start_ns, std::int64_t dur_ns) const {
  const Trace& trace = pyramid(rank).trace();
  return trace.clock.drift == 0 ? dur_ns : run_time_ns(trace, start_ns + dur_ns) - run_time_ns(trace, start_ns);
}

// Lanes by rank, each predicted rank below the recorded one that it was made of.
std::vector<std::size_t> Scene::drawing_order() const {
  std::vector<std::size_t> order(places_.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t recorded = std::min(predicted_from_, pyramids_.size());
  const auto key = [&](std::size_t lane) {
    const std::size_t rank = places_[lane].rank;
    return rank < recorded ? 2 * rank : 2 * (rank - recorded) + 1;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

std::string Scene::lanes_json() const {
  JsonWriter json;
  json.begin_object().key("schema_version").number(1);
  json.key("origin_ns").text(std::to_string(origin_ns_)).key("end").number(end_ns_ - origin_ns_);
  json.key("ranks").begin_array();
  for (std::size_t rank = 0; rank < pyramids_.size(); rank++) {
    const Trace& trace = pyramid(rank).trace();
    json.begin_object(kLine).key("rank");
    if (trace.rank.rank >= 0) {
      json.number(trace.rank.rank);
    } else {
      json.null();
    }
    json.key("predicted").boolean(rank >= predicted_from_);
    json.key("file").text(trace.source.path).key("clock").text(to_string(trace.clock.source));
    const double rate = 1 + trace.clock.drift;
    json.key("first_ns").text(std::to_string(pyramid(rank).start_ns()));
    json.key("first").number(after_origin(rank, pyramid(rank).start_ns())).key("rate").number(rate);
    json.key("last").number(after_origin(rank, pyramid(rank).end_ns()));
    json.key("bytes");
    if (const auto bytes = rank < predicted_from_ ? given_bytes(trace) : std::nullopt) {
      json.number(*bytes);
    } else {
      json.null();
    }
    const std::vector<Interval> walls = step_walls(trace);
    json.key("steps").begin_object(kLine);
    json.key("start").begin_array(kLine);
    for (const Interval& wall : walls) json.number(after_origin(rank, wall.start));
    json.end_array().key("end").begin_array(kLine);
    for (const Interval& wall : walls) json.number(after_origin(rank, wall.end));
    json.end_array().key("host_start").begin_array(kLine);
    for (const Step& step : trace.steps) json.number(after_origin(rank, step.start_ns));
    json.end_array().key("name").begin_array(kLine);
    for (const Step& step : trace.steps) {
      json.text(step.number == kAbsent ? cut(step.name) : std::string_view(std::to_string(step.number)));
    }
    json.end_array().end_object().end_object();
  }
  json.end_array().key("lanes").begin_array();
  for (const std::size_t i : drawing_order()) {
    const auto& [rank, at] = places_[i];
    const timeline::Lane& lane = pyramid(rank).lanes()[at];
    const Trace& trace = pyramid(rank).trace();
    const Track& track = trace.tracks[static_cast<std::size_t>(lane.track)];
    const std::string label = track_label(trace, static_cast<std::size_t>(lane.track));
    const std::size_t slash = label.find(" / ");
    json.begin_object(kLine).key("id").number(i).key("rank").number(rank);
    json.key("kind").text(track.device ? "stream" : "thread");
    json.key("name").text(cut(slash == label.npos ? label : std::string_view(label).substr(slash + 3)));
    json.key("group").text(cut(slash == label.npos ? std::string_view() : std::string_view(label).substr(0, slash)));
    json.key("rows").number(lane.rows).key("slices").number(lane.slices).end_object();
  }
  for (std::size_t i = 0; i < counters_.size(); i++) {
    const timeline::CounterCurve& curve = counters_[i];
    json.begin_object(kLine).key("id").number(places_.size() + i);
    json.key("rank").number(std::min(curve.rank, pyramids_.size()));  // one beyond them: of no rank
    json.key("kind").text("counter").key("name").text(cut(curve.name)).key("group").text(cut(curve.group));
    json.key("unit").text(cut(curve.unit)).key("low").number(curve.low()).key("high").number(curve.high());
    json.key("rows").number(0).key("slices").number(0).end_object();
  }
  json.end_array().key("counters_left_out").number(counters_left_out_).end_object();
  return json.take() + "\n";
}

std::string Scene::tiles(Stretch stretch, std::int64_t pixels, std::span<const std::uint32_t> lanes) const {
  struct Found {
    std::size_t rank;
    std::uint32_t row;
    Rect rect;
  };
  std::vector<Found> all;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> counts;  // lane, its rectangles
  const auto draw = [&](std::int64_t merge_ns) {
    all.clear();
    counts.clear();
    std::vector<Rect> rects;
    for (const std::uint32_t lane : lanes) {
      if (lane >= places_.size()) continue;
      const auto& [rank, at] = places_[lane];
      const std::size_t before = all.size();
      for (std::uint32_t row = 0; row < pyramid(rank).lanes()[at].rows; row++) {
        rects.clear();
        pyramid(rank).query(at, row, in_file(rank, stretch.from_ns), in_file(rank, stretch.to_ns), merge_ns, rects);
        if (all.size() + rects.size() > kMostRects) return false;
        for (const Rect& rect : rects) all.push_back({rank, row, rect});
      }
      counts.emplace_back(lane, static_cast<std::uint32_t>(all.size() - before));
    }
    return true;
  };
  // Rather coarser than with holes. What lasts longer than the stretch is one rectangle a row, so there is an end.
  const std::int64_t length_ns = stretch.to_ns - stretch.from_ns;
  for (std::int64_t pixels_here = pixels; !draw(std::max<std::int64_t>(2 * (length_ns / pixels_here), 1));) {
    if (pixels_here == 1) break;
    pixels_here = std::max<std::int64_t>(pixels_here / 4, 1);
  }
  const double wide_ns = kLabelPixels * static_cast<double>(length_ns) / static_cast<double>(pixels);
  std::map<std::uint32_t, std::string_view> names;
  const auto name_id = [&](const Found& one) {
    return one.rect.name == StringId::none ? UINT32_MAX
                                           : first_name_[one.rank] + static_cast<std::uint32_t>(one.rect.name);
  };
  for (const Found& one : all) {
    if (static_cast<double>(one.rect.dur_ns) < wide_ns || one.rect.name == StringId::none) continue;
    names.emplace(name_id(one), cut(pyramid(one.rank).trace().strings[one.rect.name]));
  }
  JsonWriter json;
  json.begin_object(kLine).key("names").begin_object(kLine);
  for (const auto& [id, name] : names) json.key(std::to_string(id)).text(name);
  json.end_object().end_object();
  const std::string trailer = json.take();
  Columns out;
  out.add(kMagic);
  out.add(static_cast<std::uint32_t>(counts.size()));
  out.add(static_cast<std::uint32_t>(all.size()));
  out.add(static_cast<std::uint32_t>(trailer.size()));
  for (const auto& [lane, count] : counts) out.add(lane), out.add(count);
  out.pad();
  const auto column = [&](const auto& value_of) {
    for (const Found& one : all) out.add(value_of(one));
    out.pad();
  };
  column([&](const Found& one) { return static_cast<double>(after_origin(one.rank, one.rect.start_ns)); });
  column([&](const Found& one) { return static_cast<double>(length(one.rank, one.rect.start_ns, one.rect.dur_ns)); });
  column([&](const Found& one) { return static_cast<std::uint32_t>(one.rect.slice); });
  column([&](const Found& one) { return one.rect.count; });
  column(name_id);
  column([&](const Found& one) { return static_cast<std::uint16_t>(one.row); });
  column([&](const Found& one) { return static_cast<std::uint8_t>(one.rect.kind); });
  column([&](const Found& one) {
    return static_cast<std::uint8_t>(std::lround(std::clamp(one.rect.fill, 0.0F, 1.0F) * 255.0F));
  });
  out.text(trailer);
  return out.take();
}

std::string Scene::search_json(std::string_view text, std::size_t limit) const {
  std::string wanted(text);
  std::transform(wanted.begin(), wanted.end(), wanted.begin(), lower);
  JsonWriter json;
  json.begin_object().key("found").begin_array();
  std::uint64_t total = 0;
  for (std::size_t rank = 0; rank < pyramids_.size() && !wanted.empty(); rank++) {
    const timeline::Pyramid& one = pyramid(rank);
    const Trace& trace = one.trace();
    std::vector<bool> named(trace.strings.size());
    for (std::size_t i = 0; i < named.size(); i++) named[i] = holds(trace.strings[static_cast<StringId>(i)], wanted);
    for (std::uint32_t i = 0; i < trace.slices.size(); i++) {
      const StringId name = trace.slices.name[i];
      if (name == StringId::none || !named[static_cast<std::size_t>(name)]) continue;
      const auto slice = static_cast<SliceId>(i);
      std::size_t lane = 0;
      std::uint32_t row = 0;
      if (!one.place_of(slice, lane, row)) continue;
      if (total++ >= limit) continue;
      const std::int64_t start = trace.slices.start_ns[i];
      json.begin_object(kLine).key("rank").number(rank).key("lane").number(first_lane_[rank] + lane);
      json.key("row").number(row).key("slice").number(i).key("start").number(after_origin(rank, start));
      json.key("duration").number(length(rank, start, trace.slices.dur_ns[i]));
      json.key("name").text(cut(trace.strings[name])).end_object();
    }
  }
  json.end_array().key("total").number(total).end_object();
  return json.take() + "\n";
}

std::string Scene::selection_json(Stretch stretch, std::span<const std::uint32_t> lanes) const {
  std::map<std::string_view, Sum> sums;
  for (std::size_t rank = 0; rank < pyramids_.size(); rank++) {
    const timeline::Pyramid& one = pyramid(rank);
    const Trace& trace = one.trace();
    std::vector<bool> wanted(one.lanes().size());
    for (const std::uint32_t lane : lanes) {
      if (lane < places_.size() && places_[lane].rank == rank) wanted[places_[lane].lane] = true;
    }
    const std::int64_t from = in_file(rank, stretch.from_ns), to = in_file(rank, stretch.to_ns);
    std::unordered_map<StringId, Sum> of_names;
    for (std::uint32_t i = 0; i < trace.slices.size(); i++) {
      const auto slice = static_cast<SliceId>(i);
      const std::int64_t begin = std::max(trace.slices.start_ns[i], from);
      const std::int64_t end = std::min(trace.slices.end_ns(slice), to);
      std::size_t lane = 0;
      std::uint32_t row = 0;
      if (begin >= to || end < from || (end == from && trace.slices.dur_ns[i] > 0)) continue;
      if (!one.place_of(slice, lane, row) || !wanted[lane]) continue;
      const std::int64_t inside = std::max<std::int64_t>(end - begin, 0);
      Sum& sum = of_names[trace.slices.name[i]];
      sum.count++;
      sum.total_ns += inside;
      sum.self_ns += inside;
      sum.kind = one.kind_of(slice);
      const SliceId above = trace.slices.parent[slice];
      if (above != SliceId::none) of_names[trace.slices.name[above]].self_ns -= inside;
    }
    for (const auto& [name, sum] : of_names) {
      if (sum.count == 0) continue;
      Sum& all = sums[name == StringId::none ? std::string_view("(no name)") : trace.strings[name]];
      all.count += sum.count;
      all.total_ns += sum.total_ns;
      all.self_ns += sum.self_ns;
      all.kind = sum.kind;
    }
  }
  std::vector<std::pair<std::string_view, Sum>> rows(sums.begin(), sums.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.total_ns > b.second.total_ns; });
  JsonWriter json;
  json.begin_object().key("rows").begin_array();
  for (std::size_t i = 0; i < rows.size() && i < kMostSums; i++) {
    const auto& [name, sum] = rows[i];
    json.begin_object(kLine).key("name").text(cut(name)).key("class").number(static_cast<unsigned>(sum.kind));
    json.key("count").number(sum.count).key("total_ns").number(sum.total_ns);
    json.key("self_ns").number(std::max<std::int64_t>(sum.self_ns, 0)).end_object();
  }
  json.end_array().key("cut").boolean(rows.size() > kMostSums).end_object();
  return json.take() + "\n";
}

}  // namespace stepscope::serve
