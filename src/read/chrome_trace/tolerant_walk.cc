#include "read/chrome_trace/tolerant_walk.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "read/chrome_trace/decoder_members.h"

namespace stepscope::read::chrome_trace {
namespace {

constexpr std::string_view kEventKeys[] = {"ph\"",  "name\"", "cat\"",  "ts\"", "pid\"",
                                           "tid\"", "id\"",   "args\"", "dur\""};
// Keys that stand behind the event array in what Kineto and Chrome write.
constexpr std::string_view kTopKeys[] = {
    "traceName\"",         "displayTimeUnit\"", "schemaVersion\"",   "deviceProperties\"",
    "otherData\"",         "metadata\"",        "distributedInfo\"", "baseTimeNanoseconds\"",
    "systemTraceEvents\"", "stackFrames\"",     "samples\"",         "traceEvents\""};
constexpr std::size_t kLookAhead = 64;        // a border is recognised within this many bytes
constexpr std::size_t kStrayLimit = 1 << 20;  // a value between events that is longer counts as lost bytes
// Bytes that may be looked at in vain: hostile texts nest event starts so that each one is read to the end.
constexpr std::uint64_t kWasteFloor = 64 << 20;
constexpr std::uint64_t kWasteFactor = 8;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\0'; }
bool is_letter(char c) { return static_cast<unsigned char>((c | 32) - 'a') < 26 || c == '_'; }

// A scalar that JSON knows: number, true, false, null.
bool known_scalar(std::string_view token) {
  if (token == "true" || token == "false" || token == "null") return true;
  return std::all_of(token.begin(), token.end(), [](char c) {
    return formats::is_digit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
  });
}

bool starts_with_any(std::string_view text, std::span<const std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return text.starts_with(key); });
}

}  // namespace

void TolerantWalk::note(Damage damage, std::size_t at, std::uint64_t count) {
  Tally& tally = damage_[static_cast<std::size_t>(damage)];
  if (tally.count == 0) tally.first_offset = offset_ + at;
  tally.count += count;
}

std::size_t TolerantWalk::space(std::size_t at) const {
  while (at < size_ && is_space(text_[at])) at++;
  return at;
}

// Remembers how far a value was looked at before it failed.
TolerantWalk::Outcome TolerantWalk::stop(Outcome outcome, std::size_t at) {
  reach_ = std::max(reach_, at);
  return outcome;
}

// Is text_[brace] == '{' the start of an event, by its first key?
bool TolerantWalk::event_starts(std::size_t brace) const {
  const std::size_t quote = space(brace + 1);
  if (quote >= size_ || text_[quote] != '"') return false;
  return starts_with_any({text_ + quote + 1, size_ - quote - 1}, kEventKeys);
}

// Is text_[bracket] == ']' the end of the event array, seen from inside damage? Behind an event, and what follows is
// the end of the text or a key that stands at the top of a trace.
bool TolerantWalk::array_ends(std::size_t bracket) const {
  std::size_t before = bracket;
  while (before > 0 && is_space(text_[before - 1])) before--;
  if (before == 0 || text_[before - 1] != '}') return false;
  std::size_t next = space(bracket + 1);
  if (next < size_ && text_[next] == '}') next = space(next + 1);
  if (next >= size_) return at_end_;
  if (text_[next] != ',') return false;
  next = space(next + 1);
  return next < size_ && text_[next] == '"' && starts_with_any({text_ + next + 1, size_ - next - 1}, kTopKeys);
}

// Does the list of events go on behind text_[bracket] == ']'? (A stray bracket, or a second list glued to the first.)
TolerantWalk::Sure TolerantWalk::goes_on(std::size_t bracket) const {
  const Sure short_of = at_end_ ? Sure::no : Sure::more;
  std::size_t next = space(bracket + 1);
  if (next >= size_) return short_of;
  if (text_[next] != ',') return Sure::no;
  next = space(next + 1);
  if (next < size_ && text_[next] == '[') next = space(next + 1);
  if (next >= size_) return short_of;
  if (text_[next] != '{') return Sure::no;
  if (!at_end_ && size_ - next < kLookAhead) return Sure::more;
  return event_starts(next) ? Sure::yes : Sure::no;
}

// The next place at or after `from` that looks like an event or the array's end; size_ when there is none.
std::size_t TolerantWalk::resync(std::size_t from) const {
  for (std::size_t at = from; at < size_; at++) {
    if (text_[at] == '{' && event_starts(at)) return at;
    if (text_[at] == ']' && array_ends(at)) return at;
  }
  return size_;
}

// Does the quote at `quote` end its text? A key is followed by ':', a value by ',', '}' or ']' – or by the next key,
// when a comma is missing.
TolerantWalk::Sure TolerantWalk::closes(std::size_t quote, Role role) const {
  const std::size_t next = space(quote + 1);
  if (next >= size_) return at_end_ ? Sure::yes : Sure::more;
  const char c = text_[next];
  if (role == Role::key) return c == ':' ? Sure::yes : Sure::no;
  if (c == ',' || c == '}' || c == ']' || (role == Role::nested && c == ':')) return Sure::yes;
  if (c != '"') return Sure::no;
  const bool short_of = !at_end_ && size_ - next < 2 * kLookAhead;
  const std::string_view ahead(text_ + next + 1, std::min(kLookAhead, size_ - next - 1));
  const std::size_t end = ahead.find('"');
  if (end == std::string_view::npos) return short_of ? Sure::more : Sure::no;
  const std::size_t colon = space(next + 1 + end + 1);
  if (colon >= size_) return at_end_ ? Sure::no : Sure::more;
  return text_[colon] == ':' ? Sure::yes : Sure::no;
}

// `\"` at the end of a text, as in "C:\", "next": 1. In valid JSON the quote of the next key would close this text, and
// no letter can follow that; so a letter there shows that the backslash was meant as itself.
TolerantWalk::Sure TolerantWalk::literal_backslash(std::size_t quote) const {
  std::size_t at = quote + 1;
  bool comma = false;
  while (at < size_ && at < quote + kLookAhead &&
         (is_space(text_[at]) || text_[at] == ',' || text_[at] == '}' || text_[at] == '{')) {
    comma |= text_[at++] == ',';
  }
  if (at + 1 >= size_) return at_end_ || !comma ? Sure::no : Sure::more;
  return comma && text_[at] == '"' && is_letter(text_[at + 1]) ? Sure::yes : Sure::no;
}

// At the opening quote; behind the closing one afterwards.
TolerantWalk::Outcome TolerantWalk::string(std::size_t& at, Role role) {
  for (std::size_t i = at + 1; i < size_; i++) {
    if (text_[i] == '\\') {
      if (++i >= size_ || text_[i] != '"' || role == Role::key) continue;
      const Sure literal = literal_backslash(i);
      if (literal == Sure::more) return stop(Outcome::more, i);
      if (literal == Sure::no) continue;
      at = i + 1;
      return Outcome::done;
    }
    if (text_[i] != '"') continue;
    const Sure sure = closes(i, role);
    if (sure == Sure::more) return stop(Outcome::more, i);
    if (sure == Sure::yes) {
      at = i + 1;
      return Outcome::done;
    }
    // `{"` cannot stand inside a text (its quote would be escaped): another event begins here.
    std::size_t before = i;
    while (before > at + 1 && is_space(text_[before - 1])) before--;
    if (role == Role::key || text_[before - 1] == '{') return stop(Outcome::broken, i);
    note(Damage::inner_quote, i);
  }
  return stop(Outcome::more, size_);
}

// At '{' or '['; behind the matching bracket afterwards. The open brackets are on the heap, not on the call stack.
TolerantWalk::Outcome TolerantWalk::nested(std::size_t& at) {
  open_.clear();
  bool key_next = false;  // in an object, behind '{' or ','
  for (std::size_t i = at; i < size_;) {
    const char c = text_[i];
    if (c == '{' || c == '[') {
      if (key_next) return stop(Outcome::broken, i);  // no key: another event begins here
      open_ += c;
      key_next = c == '{';
    } else if (c == '}' || c == ']') {
      if (open_.back() != (c == '}' ? '{' : '[')) return stop(Outcome::broken, i);
      open_.pop_back();
      key_next = false;
      if (open_.empty()) {
        at = i + 1;
        return Outcome::done;
      }
    } else if (c == '"') {
      if (const Outcome outcome = string(i, Role::nested); outcome != Outcome::done) return outcome;
      key_next = false;
      continue;
    } else if (c == ',') {
      key_next = open_.back() == '{';
    }
    i++;
  }
  return stop(Outcome::more, size_);
}

// A token without quotes, up to the next comma or closing bracket. Empty: an empty value.
TolerantWalk::Outcome TolerantWalk::scalar(std::size_t& at, std::size_t& finish) {
  std::size_t end = at;
  while (end < size_ && text_[end] != ',' && text_[end] != '}' && text_[end] != ']' && text_[end] != '\n') {
    if (text_[end] == '"' && end > at && is_space(text_[end - 1])) {  // a comma is missing before the next key
      std::size_t last = end;
      while (last > at && is_space(text_[last - 1])) last--;
      if (last > at && known_scalar({text_ + at, last - at})) break;
    }
    if (text_[end] == '{' || text_[end] == '"') return stop(Outcome::broken, end);
    end++;
  }
  if (end >= size_) return stop(Outcome::more, size_);
  finish = end;
  while (finish > at && is_space(text_[finish - 1])) finish--;
  if (finish == at) {
    note(Damage::empty_value, at);
  } else if (!known_scalar({text_ + at, finish - at})) {
    note(Damage::bare_word, at);
  }
  at = end;
  return Outcome::done;
}

// At a key's quote; behind the value afterwards.
TolerantWalk::Outcome TolerantWalk::member(Decoder& decoder, std::size_t& at, bool arguments) {
  const std::size_t key = at + 1;
  if (const Outcome outcome = string(at, Role::key); outcome != Outcome::done) return outcome;
  const std::size_t key_size = at - 1 - key;
  at = space(space(at) + 1);  // behind ':'
  if (at >= size_) return stop(Outcome::more, size_);
  const std::size_t begin = at;
  std::size_t finish = at;
  const char first = text_[begin];
  if (!arguments && first == '{' && std::string_view(text_ + key, key_size) == "args") return object(decoder, at, true);
  const Outcome outcome = first == '"'                   ? string(at, Role::value)
                          : first == '{' || first == '[' ? nested(at)
                                                         : scalar(at, finish);
  if (outcome != Outcome::done) return outcome;
  if (first == '"' || first == '{' || first == '[') finish = at;
  if (finish == begin) return Outcome::done;  // an empty value: as if the key were absent
  if (arguments) {
    decoder.argument(text_ + key, key_size, text_ + begin, text_ + finish);
  } else {
    decoder.member(text_ + key, key_size, text_ + begin, text_ + finish);
  }
  return Outcome::done;
}

// At '{' of an event or of its arguments; behind '}' afterwards.
TolerantWalk::Outcome TolerantWalk::object(Decoder& decoder, std::size_t& at, bool arguments) {
  const std::size_t open = at++;
  bool comma = true;  // a comma (or the opening brace) stands before the next member
  while (true) {
    at = space(at);
    if (at >= size_) return stop(Outcome::more, size_);
    const char c = text_[at];
    if (c == '}') break;
    if (c == ',') {
      if (comma) note(Damage::extra_comma, at);
      comma = true;
      at++;
      continue;
    }
    if (c != '"') return stop(Outcome::broken, at);
    if (!comma) note(Damage::missing_comma, at);
    if (const Outcome outcome = member(decoder, at, arguments); outcome != Outcome::done) return outcome;
    comma = false;
  }
  at++;
  if (arguments) decoder.arguments_text(text_ + open, text_ + at);
  return Outcome::done;
}

TolerantWalk::Outcome TolerantWalk::event(Decoder& decoder, std::size_t begin, std::size_t& next) {
  const DamageTally before = damage_;
  if (between_ == Between::event) note(Damage::missing_comma, begin);
  decoder.save_defects();
  decoder.begin_event(text_ + begin);
  std::size_t at = begin;
  reach_ = begin + 1;
  const Outcome outcome = object(decoder, at, false);
  if (outcome == Outcome::done) {
    decoder.end_event(text_ + at);
    between_ = Between::event;
    next = at;
  } else {
    damage_ = before;  // counted again on the next try, or as a broken event
    decoder.restore_defects();
    wasted_ += reach_ - begin;
  }
  return outcome;
}

// A value between events that is no object. Valid JSON may hold some, but no trace means anything by them.
TolerantWalk::Outcome TolerantWalk::stray(std::size_t& at) {
  const std::size_t begin = at;
  const char c = text_[at];
  const DamageTally before = damage_;
  Outcome outcome = Outcome::broken;
  if (c == '"') outcome = string(at, Role::value);
  if (c == '[') outcome = nested(at);
  if (formats::is_digit(c) || c == '-' || c == 't' || c == 'f' || c == 'n') {
    std::size_t finish = at;
    outcome = scalar(at, finish);
    if (outcome == Outcome::done && !known_scalar({text_ + begin, finish - begin})) outcome = Outcome::broken;
  }
  damage_ = before;
  if (outcome == Outcome::more && (at_end_ || size_ - begin > kStrayLimit)) outcome = Outcome::broken;
  if (outcome == Outcome::done) {
    note(Damage::lost_bytes, begin, at - begin);
    between_ = Between::event;
  } else {
    at = begin;
  }
  return outcome;
}

// Moves from `at` to the next event or the array's end, searched from `search` on. False: this text has none; what must
// be offered again begins at `at` then.
bool TolerantWalk::skip_lost(std::size_t& at, std::size_t search) {
  const std::size_t next = resync(search);
  lost_ = next == size_;
  const std::size_t until = !lost_ || at_end_ ? next : std::max(at, size_ > kLookAhead ? size_ - kLookAhead : 0);
  if (until > at) note(Damage::lost_bytes, at, until - at);
  at = until;
  between_ = !lost_ && text_[next] == ']' ? Between::event : Between::comma;
  return !lost_;
}

std::size_t TolerantWalk::walk(Decoder& decoder, const char* text, std::size_t size, std::uint64_t offset, bool at_end,
                               WalkEnd& end) {
  text_ = text;
  size_ = size;
  offset_ = offset;
  at_end_ = at_end;
  seen_ += size;
  end = {};
  std::size_t at = 0;
  if (lost_ && !skip_lost(at, 0)) return at;
  while (true) {
    at = space(at);
    if (at >= size_) return size_;
    const char c = text_[at];
    if (c == ',') {
      if (between_ != Between::event) note(Damage::extra_comma, at);
      between_ = Between::comma;
      at++;
      continue;
    }
    if (c == ']') {
      const Sure more_events = goes_on(at);
      if (more_events == Sure::more) return at;
      if (more_events == Sure::no) {
        if (between_ == Between::comma) note(Damage::extra_comma, at);
        end = {true, at};
        return at;
      }
    }
    Outcome outcome = Outcome::broken;
    if (c == '{') {
      outcome = event(decoder, at, at);
      if (outcome == Outcome::more && !at_end) decoder.forget_event();
    } else if (c != ']') {
      outcome = stray(at);
    }
    if (outcome == Outcome::done) continue;
    if (outcome == Outcome::more && !at_end) return at;
    const bool spent = wasted_ > kWasteFloor + kWasteFactor * seen_;
    const std::size_t search = spent && c == '{' ? reach_ : at + 1;
    if (c == '{') {
      const bool cut = outcome == Outcome::more && resync(search) == size_;  // no later event: only this one is broken
      note(cut ? Damage::cut_event : Damage::broken_event, at);
      if (cut) return size_;
    }
    if (!skip_lost(at, search)) return at;
  }
}

}  // namespace stepscope::read::chrome_trace
