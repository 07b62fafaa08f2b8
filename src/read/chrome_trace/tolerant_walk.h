// The patient path: reads events byte by byte, repairs what can be repaired, and finds the next event behind what
// cannot. Slower than the strict walk, and only used for the chunks that it refuses. On valid JSON it feeds exactly
// what the strict walk feeds; what it does with damage does not depend on how the text was cut into chunks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "read/chrome_trace/decoder.h"
#include "read/chrome_trace/strict_walk.h"

namespace stepscope::read::chrome_trace {

// What was repaired or lost, counted, with the first place.
enum class Damage : std::uint8_t {
  cut_event,     // the text ends inside an event; that event is dropped
  broken_event,  // an event that could not be understood; dropped
  lost_bytes,    // bytes that belong to no whole event, those of broken events included (count = bytes)
  missing_comma,
  extra_comma,
  bare_word,    // NaN, N/A, ncclFloat32 … where a value should be
  empty_value,  // "key": ,
  inner_quote,  // an unescaped quote inside a text
  count_,
};

using DamageTally = std::array<Tally, static_cast<std::size_t>(Damage::count_)>;

class TolerantWalk {
 public:
  // Feeds the events of text[0, size) to the decoder and returns how many bytes were used. Unless `at_end`, the rest
  // (less than an event) is to be offered again with more text behind it. `offset` is the place of text[0] in the file.
  std::size_t walk(Decoder& decoder, const char* text, std::size_t size, std::uint64_t offset, bool at_end,
                   WalkEnd& end);

  // The next text does not continue the last one: it starts behind an event and its comma.
  void restart() {
    between_ = Between::comma;
    lost_ = false;
  }

  const DamageTally& damage() const { return damage_; }

 private:
  enum class Between : std::uint8_t { start, comma, event };  // what stood last, between events
  enum class Outcome : std::uint8_t { done, more, broken };
  enum class Role : std::uint8_t { key, value, nested };  // of a text
  enum class Sure : std::uint8_t { no, yes, more };

  Outcome event(Decoder& decoder, std::size_t begin, std::size_t& next);
  Outcome object(Decoder& decoder, std::size_t& at, bool arguments);
  Outcome member(Decoder& decoder, std::size_t& at, bool arguments);
  Outcome string(std::size_t& at, Role role);
  Outcome nested(std::size_t& at);
  Outcome scalar(std::size_t& at, std::size_t& finish);
  Outcome stray(std::size_t& at);
  Outcome stop(Outcome outcome, std::size_t at);
  bool skip_lost(std::size_t& at, std::size_t search);
  Sure closes(std::size_t quote, Role role) const;
  Sure literal_backslash(std::size_t quote) const;
  bool event_starts(std::size_t brace) const;
  bool array_ends(std::size_t bracket) const;
  Sure goes_on(std::size_t bracket) const;
  std::size_t resync(std::size_t from) const;
  std::size_t space(std::size_t at) const;
  void note(Damage damage, std::size_t at, std::uint64_t count = 1);

  const char* text_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t offset_ = 0;
  bool at_end_ = false;
  bool lost_ = false;  // between pieces of text: inside bytes that belong to no event
  Between between_ = Between::start;
  std::string open_;          // brackets of the nested value that is being skipped
  std::size_t reach_ = 0;     // how far the event that failed last was looked at
  std::uint64_t wasted_ = 0;  // bytes looked at in events that failed
  std::uint64_t seen_ = 0;    // bytes offered
  DamageTally damage_{};
};

}  // namespace stepscope::read::chrome_trace
