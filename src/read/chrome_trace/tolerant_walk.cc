#include "read/chrome_trace/tolerant_walk.h"

#include <cstring>
#include <string_view>

namespace stepscope::read::chrome_trace {
namespace {

constexpr std::string_view kEventKeys[] = {"ph\"",  "name\"", "cat\"",  "ts\"", "pid\"",
                                           "tid\"", "id\"",   "args\"", "dur\""};
constexpr std::size_t kLookAhead = 64;  // a border is recognised within this many bytes

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\0'; }

// A scalar that JSON knows: number, true, false, null.
bool known_scalar(std::string_view token) {
  if (token == "true" || token == "false" || token == "null") return true;
  for (const char c : token) {
    if (!formats::is_digit(c) && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E') return false;
  }
  return true;
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

// Is text_[brace] == '{' the start of an event, by its first key?
bool TolerantWalk::event_starts(std::size_t brace) const {
  const std::size_t quote = space(brace + 1);
  if (quote >= size_ || text_[quote] != '"') return false;
  const std::string_view rest(text_ + quote + 1, size_ - quote - 1);
  for (const std::string_view key : kEventKeys) {
    if (rest.starts_with(key)) return true;
  }
  return false;
}

// The next place at or after `from` that looks like an event or the array's end; size_ when there is none.
std::size_t TolerantWalk::resync(std::size_t from) const {
  for (std::size_t at = from; at < size_; at++) {
    const void* brace = std::memchr(text_ + at, '{', size_ - at);
    if (brace == nullptr) break;
    at = static_cast<std::size_t>(static_cast<const char*>(brace) - text_);
    if (event_starts(at)) return at;
  }
  return size_;
}

// Does the quote at `quote` end its text? A key is followed by ':', a value by ',', '}' or ']' – or by the next key,
// when a comma is missing.
bool TolerantWalk::closes(std::size_t quote, bool key, bool& unsure) const {
  const std::size_t next = space(quote + 1);
  if (next >= size_) {
    unsure = !at_end_;
    return at_end_;
  }
  const char c = text_[next];
  if (key) return c == ':';
  if (c == ',' || c == '}' || c == ']') return true;
  if (c != '"') return false;
  const std::string_view ahead(text_ + next + 1, std::min(kLookAhead, size_ - next - 1));
  const std::size_t end = ahead.find('"');
  if (end == std::string_view::npos) return false;
  const std::size_t colon = space(next + 1 + end + 1);
  return colon < size_ && text_[colon] == ':';
}

// At the opening quote; behind the closing one afterwards.
TolerantWalk::Outcome TolerantWalk::string(std::size_t& at, bool key) {
  const std::size_t open = at;
  for (std::size_t i = open + 1; i < size_; i++) {
    const char c = text_[i];
    if (c == '\\') {
      i++;
    } else if (c == '"') {
      bool unsure = false;
      if (closes(i, key, unsure)) {
        at = i + 1;
        return Outcome::done;
      }
      if (unsure) return Outcome::more;
      // `{"` cannot stand inside a text (its quote would be escaped): another event begins here.
      if (key || text_[i - 1] == '{') return Outcome::broken;
      note(Damage::inner_quote, i);
    }
  }
  return Outcome::more;
}

// At '{' or '['; behind the matching bracket afterwards. Depth is a counter, not a call stack.
TolerantWalk::Outcome TolerantWalk::nested(std::size_t& at) {
  std::size_t depth = 0;
  for (std::size_t i = at; i < size_; i++) {
    const char c = text_[i];
    if (c == '{' && i > at && event_starts(i) && text_[i - 1] == '\n') return Outcome::broken;
    if (c == '{' || c == '[') {
      depth++;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) {
        at = i + 1;
        return Outcome::done;
      }
    } else if (c == '"') {
      for (i++; i < size_ && text_[i] != '"'; i++) i += text_[i] == '\\';
    }
  }
  return Outcome::more;
}

// A token without quotes, up to the next comma or closing bracket. Empty: an empty value.
TolerantWalk::Outcome TolerantWalk::scalar(std::size_t& at, std::size_t& finish) {
  std::size_t end = at;
  while (end < size_ && text_[end] != ',' && text_[end] != '}' && text_[end] != ']' && text_[end] != '\n') {
    if (text_[end] == '{' || text_[end] == '"') return Outcome::broken;
    end++;
  }
  if (end >= size_) return Outcome::more;
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
  if (const Outcome outcome = string(at, true); outcome != Outcome::done) return outcome;
  const std::size_t key_size = at - 1 - key;
  at = space(space(at) + 1);  // behind ':'
  if (at >= size_) return Outcome::more;
  const std::size_t begin = at;
  std::size_t finish = at;
  const char first = text_[begin];
  if (!arguments && first == '{' && std::string_view(text_ + key, key_size) == "args") return object(decoder, at, true);
  const Outcome outcome = first == '"'                   ? string(at, false)
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
    if (at >= size_) return Outcome::more;
    const char c = text_[at];
    if (c == '}') break;
    if (c == ',') {
      if (comma) note(Damage::extra_comma, at);
      comma = true;
      at++;
      continue;
    }
    if (c != '"') return Outcome::broken;
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
  decoder.begin_event(text_ + begin);
  std::size_t at = begin;
  const Outcome outcome = object(decoder, at, false);
  if (outcome == Outcome::done) {
    decoder.end_event(text_ + at);
    between_ = Between::event;
    next = at;
  } else {
    damage_ = before;  // counted again on the next try, or as a broken event
  }
  return outcome;
}

std::size_t TolerantWalk::walk(Decoder& decoder, const char* text, std::size_t size, std::uint64_t offset, bool at_end,
                               WalkEnd& end) {
  text_ = text;
  size_ = size;
  offset_ = offset;
  at_end_ = at_end;
  end = {};
  std::size_t at = 0;
  while (true) {
    at = space(at);
    if (at >= size_) return size_;
    const char c = text_[at];
    if (c == ']') {
      if (between_ == Between::comma) note(Damage::extra_comma, at);
      end = {true, at};
      return at;
    }
    if (c == ',') {
      if (between_ != Between::event) note(Damage::extra_comma, at);
      between_ = Between::comma;
      at++;
      continue;
    }
    const bool brace = c == '{';
    if (brace) {
      const Outcome outcome = event(decoder, at, at);
      if (outcome == Outcome::done) continue;
      if (outcome == Outcome::more && !at_end) {
        decoder.forget_event();
        return at;
      }
      if (outcome == Outcome::more && resync(at + 1) == size_) {  // no later event shows that only this one is broken
        note(Damage::cut_event, at);
        return size_;
      }
    }
    const std::size_t next = resync(at + 1);
    if (next == size_ && !at_end) {
      if (brace) {
        decoder.forget_event();
        return at;
      }
      const std::size_t keep = size_ > at + kLookAhead ? size_ - kLookAhead : at;
      note(Damage::lost_bytes, at, keep - at);
      return keep;
    }
    if (brace) {
      note(Damage::broken_event, at);
    } else {
      note(Damage::lost_bytes, at, next - at);
    }
    between_ = Between::comma;
    at = next;
  }
}

}  // namespace stepscope::read::chrome_trace
