#include "model/input_text.h"

#include <charconv>
#include <utility>

namespace stepscope {
namespace {

// Reads a text from left to right; every step says whether it found what it wanted.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }
  bool sees(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool number(std::int64_t& out) {
    skip_space();
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), out);
    if (error != std::errc()) return false;
    at_ += static_cast<std::size_t>(end - begin);
    return true;
  }
  bool text(std::string& out) {  // the profiler writes no escapes
    if (!take('"')) return false;
    const std::size_t end = text_.find('"', at_);
    if (end == text_.npos) return false;
    out = text_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }
  bool word(std::string_view wanted) {
    skip_space();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  bool done() {
    skip_space();
    return at_ == text_.size();
  }

  // "[" item "," item … "]"
  template <class Item>
  bool list(const Item& item) {
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      if (!item()) return false;
    } while (take(','));
    return take(']');
  }
  bool sizes(Sizes& out) {
    return list([&] { return number(out.emplace_back()); });
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) at_++;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// A list of numbers, or lists of such lists: what a collective gathers is a list of lists of tensors.
bool shape(Scanner& in, Shape& out, int depth = 0) {
  constexpr int kDeepest = 4;
  return in.list([&] {
    if (!in.sees('[')) return in.number(out.sizes.emplace_back());
    Shape inner;
    if (depth >= kDeepest || !shape(in, inner, depth + 1)) return false;
    if (inner.list.empty()) inner.list.push_back(std::move(inner.sizes));
    for (Sizes& sizes : inner.list) out.list.push_back(std::move(sizes));
    return true;
  });
}

}  // namespace

std::vector<Shape> parse_shapes(std::string_view json) {
  std::vector<Shape> shapes;
  Scanner in(json);
  // An input that is a number or a text in other writers' files has no sizes.
  const bool ok = in.list([&] { return shape(in, shapes.emplace_back()); });
  if (!ok || !in.done()) shapes.clear();
  return shapes;
}

std::vector<std::string> parse_texts(std::string_view json) {
  std::vector<std::string> texts;
  Scanner in(json);
  const bool ok = in.list([&] { return in.text(texts.emplace_back()); });
  if (!ok || !in.done()) texts.clear();
  return texts;
}

std::optional<Sizes> parse_sizes(std::string_view text) {
  Sizes sizes;
  Scanner in(text);
  if (!in.sizes(sizes) || !in.done()) return std::nullopt;
  return sizes;
}

std::optional<std::vector<bool>> parse_truths(std::string_view text) {
  std::vector<bool> truths;
  Scanner in(text);
  const auto one = [&] {
    truths.push_back(in.sees('T'));
    return in.word(truths.back() ? "True" : "False");
  };
  if (!(in.sees('[') ? in.list(one) : one()) || !in.done()) return std::nullopt;
  return truths;
}

}  // namespace stepscope
