// Series whose number is asked for once: looking it up again for each sample costs more than the sample.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry {

// Of what changes seldom, a sample in so many is enough while it stays the same.
inline constexpr int kQuietSamples = 10;

// True at the first of so many calls: what changes seldom, or is dear to read, is read then.
class Seldom {
 public:
  explicit Seldom(int one_in = kQuietSamples) : one_in_(one_in) {}
  bool now() {
    if (left_-- > 0) return false;
    left_ = one_in_ - 1;
    return true;
  }
  void at_once() { left_ = 0; }

 private:
  int one_in_, left_ = 0;
};

// A counter that never falls already.
class Count {
 public:
  explicit Count(run::SeriesAbout about) : about_(std::move(about)) { about_.kind = run::SeriesKind::counter; }

  void add(Sink& sink, std::int64_t count) {
    if (!was_told()) number_ = sink.series(about_);
    sink.add(number_, count);
  }
  bool was_told() const { return number_ != 0; }  // 0 is the clock's

 private:
  run::SeriesAbout about_;
  std::uint32_t number_ = 0;
};

// A level, as it is read.
class Level {
 public:
  explicit Level(run::SeriesAbout about) : about_(std::move(about)) { about_.kind = run::SeriesKind::gauge; }

  void add(Sink& sink, double level) {
    if (number_ == 0) number_ = sink.series(about_);
    sink.add(number_, level);
    last_ = level;
    quiet_ = 0;
  }

  void add_seldom(Sink& sink, double level) {
    if (last_ == level && ++quiet_ < kQuietSamples) return;
    add(sink, level);
  }

 private:
  run::SeriesAbout about_;
  std::uint32_t number_ = 0;  // 0 is the clock's
  std::optional<double> last_;
  int quiet_ = 0;
};

// How the numbers of a source become those of a counter that never falls.
struct Counting {
  std::int64_t scale = 1;  // units of the series in one of the source's
  std::int64_t range = 0;  // where the source begins at 0 again; 0: it does not
  std::int64_t slack = 0;  // by so much the source falls now and then without having begun anew
};

// What a counter grew by since it was read first. One that fell was set back, and goes on from there.
class Growth {
 public:
  explicit Growth(run::SeriesAbout about, Counting counting = {}) : series_(std::move(about)), counting_(counting) {}

  void add(Sink& sink, std::int64_t count) {
    if (count < 0) return;
    grow(count);
    tell(sink);
  }

  void add_seldom(Sink& sink, std::int64_t count) {
    if (count < 0) return;
    const std::int64_t before = total_;
    grow(count);
    if (!series_.was_told() || total_ != before || ++quiet_ >= kQuietSamples) tell(sink);
  }

  // Another source counts from now on.
  void begin_anew() { last_.reset(); }

 private:
  void grow(std::int64_t count) {
    const std::int64_t last = last_.value_or(count);
    if (count < last && last - count <= counting_.slack) return;
    std::int64_t grown = count - last;
    last_ = count;
    if (grown < 0 && (last > counting_.range || __builtin_add_overflow(grown, counting_.range, &grown))) return;
    std::int64_t total = 0;
    if (__builtin_mul_overflow(grown, counting_.scale, &grown)) return;
    if (grown > 0 && !__builtin_add_overflow(total_, grown, &total)) total_ = total;
  }

  void tell(Sink& sink) {
    series_.add(sink, total_);
    quiet_ = 0;
  }

  Count series_;
  Counting counting_;
  std::optional<std::int64_t> last_;
  std::int64_t total_ = 0;
  int quiet_ = 0;
};

}  // namespace stepscope::collect::telemetry
