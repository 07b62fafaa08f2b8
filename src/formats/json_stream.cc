#include "formats/json_stream.h"

#include <algorithm>
#include <cstring>

#include "formats/json_text.h"

namespace stepscope::formats {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool ends_run(char c) { return c == '"' || c == '\\'; }  // of plain bytes in a string

// Where a value ends, fed byte by byte.
class ValueEnd {
 public:
  // The value is complete without `c`, which comes next.
  bool before(char c) const { return scalar_ && (c == ',' || c == '}' || c == ']' || is_blank(c)); }
  // Takes `c`; is the value complete with it?
  bool with(char c) {
    if (scalar_) return false;
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
        return depth_ == 0;
      }
      return false;
    }
    if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      depth_++;
    } else if (c == '}' || c == ']') {
      return --depth_ == 0;
    } else if (depth_ == 0) {
      scalar_ = true;
    }
    return false;
  }
  bool is_scalar() const { return scalar_; }
  bool is_inside_string() const { return in_string_ && !escaped_; }

 private:
  bool in_string_ = false, escaped_ = false, scalar_ = false;
  std::size_t depth_ = 0;
};

}  // namespace

bool JsonStream::stop(End end) {
  if (end_ == End::open) end_ = end;
  return false;
}

// More text behind what is there; what was passed is dropped first. False at the end.
bool JsonStream::more() {
  if (end_ != End::open) return false;
  if (at_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + at_, have_ - at_);
    base_ += at_;
    have_ -= at_;
    at_ = 0;
  }
  if (buffer_.size() < have_ + window_ + kPadding) buffer_.resize(2 * have_ + window_ + kPadding);
  const Result<std::size_t> got = file_.read(buffer_.data() + have_, window_);
  if (!got) {
    error_ = got.error();
    return stop(End::failed);
  }
  if (base_ == 0 && have_ == 0 && std::string_view(buffer_).substr(0, *got).starts_with("\xEF\xBB\xBF")) at_ = 3;
  have_ += *got;
  std::memset(buffer_.data() + have_, ' ', kPadding);
  return *got > 0;
}

int JsonStream::peek() {
  for (;; at_++) {
    if (end_ != End::open || (at_ == have_ && !more())) return -1;
    if (!is_blank(buffer_[at_])) return static_cast<unsigned char>(buffer_[at_]);
  }
}

bool JsonStream::enter(char bracket) {
  if (peek() != bracket) return false;
  at_++;
  return true;
}

// To the next member or element. One comma is passed wherever it stands: lists that were put together by hand have some
// too many.
bool JsonStream::behind_comma(char closing) {
  int next = peek();
  if (next == ',') {
    at_++;
    next = peek();
  }
  if (next < 0) return stop(End::cut);
  if (next != closing) return true;
  at_++;
  return false;
}

bool JsonStream::next_element() {
  if (!behind_comma(']')) return false;
  const char next = buffer_[at_];
  return next != '}' && next != ':' && next != ',' ? true : stop(End::broken);
}

bool JsonStream::next_member(std::string& key) {
  if (!behind_comma('}')) return false;
  if (buffer_[at_] != '"') return stop(End::broken);
  const std::string_view raw = value();
  if (raw.size() < 2) return stop(End::broken);
  bool repaired = false;
  key = unescape(raw.substr(1, raw.size() - 2), repaired);
  if (peek() != ':') return stop(peek() < 0 ? End::cut : End::broken);
  at_++;
  return peek() >= 0 || stop(End::cut);
}

// Passes the value that comes next; how many bytes in front of the new place are the value that was kept, kNone: it was
// not kept.
std::size_t JsonStream::pass(bool keep) {
  const int first = peek();
  if (first < 0 || std::strchr(",:]}", first) != nullptr) {
    stop(first < 0 ? End::cut : End::broken);
    return kNone;
  }
  ValueEnd end;
  for (std::size_t size = 0;;) {
    keep = keep && size <= kLargestValue;
    if (!keep) {
      at_ += size;
      size = 0;
    }
    if (at_ + size == have_ && !more()) {
      if (!end.is_scalar()) stop(End::cut);
      at_ += size;
      return keep && end_ == End::open ? size : kNone;
    }
    const bool over = end.before(buffer_[at_ + size]);
    const bool ends = !over && end.with(buffer_[at_ + size++]);
    if (over || ends) {
      at_ += size;
      return keep ? size : kNone;
    }
    if (!end.is_inside_string()) continue;  // most bytes stand in strings: on to the next that matters
    const char* from = buffer_.data() + at_ + size;
    size +=
        static_cast<std::size_t>(std::find_if(from, static_cast<const char*>(buffer_.data()) + have_, ends_run) - from);
  }
}

void JsonStream::pass_to(std::uint64_t offset) {
  while (this->offset() < offset) {
    at_ += static_cast<std::size_t>(std::min<std::uint64_t>(offset - this->offset(), have_ - at_));
    if (this->offset() < offset && !more()) return;
  }
}

std::string_view JsonStream::value() {
  const std::size_t size = pass(true);
  return size == kNone ? std::string_view() : std::string_view(buffer_.data() + at_ - size, size);
}

}  // namespace stepscope::formats
