#include "report/page.h"

#include <algorithm>
#include <array>
#include <vector>

#include "report/utf8.h"

namespace stepscope::report {
namespace {

constexpr std::string_view kReset = "\x1b[0m";
constexpr std::array<std::string_view, 7> kInks{"",         "\x1b[1m",  "\x1b[2m", "\x1b[32m",
                                                "\x1b[33m", "\x1b[31m", "\x1b[36m"};
constexpr std::size_t kNarrowest = 40;

}  // namespace

std::size_t visible_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const std::size_t escape = std::min(text.find('\x1b'), text.size());
    width += display_width(text.substr(0, escape));
    text.remove_prefix(escape);
    const std::size_t end = text.find('m');
    text.remove_prefix(text.empty() ? 0 : end == text.npos ? text.size() : end + 1);
  }
  return width;
}

Page::Page(const TextStyle& style) : style_(style), width_(std::max<std::size_t>(style.width, kNarrowest)) {}

std::string Page::ink(Ink ink, std::string_view text) const {
  const std::string_view start = kInks[static_cast<std::size_t>(ink)];
  if (!style_.color || start.empty() || text.empty()) return std::string(text);
  return std::string(start) + std::string(text) + std::string(kReset);
}

void Page::line(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  out_ += text;
  out_ += '\n';
}

void Page::section(std::string_view title) {
  line();
  paragraph(ink(Ink::strong, title), 0, 2);
}

void Page::paragraph(std::string_view words, std::size_t indent, std::size_t hanging) {
  flow(std::string(indent, ' '), hanging, words);
}

void Page::hanging(std::string_view lead, std::string_view words) {
  const std::string start = style_.ascii ? to_ascii(lead) : std::string(lead);
  flow(start, std::min(visible_width(start), width_ / 2), words);
}

void Page::items(std::string_view lead, const std::vector<std::string>& items, std::string_view separator) {
  std::string current(lead);
  const std::size_t start = std::min(visible_width(lead), width_ / 2);
  bool empty = true;
  for (const auto& item : items) {
    if (!empty && visible_width(current) + visible_width(separator) + visible_width(item) > width_) {
      line(current);
      current.assign(start, ' ');
      empty = true;
    }
    if (!empty) current += separator;
    current += item;
    empty = false;
  }
  if (!empty) line(current);
}

void Page::flow(std::string current, std::size_t hanging, std::string_view words) {
  // Some spellings are longer in ASCII, so the line ends must be found in the final spelling.
  const std::string spelled = style_.ascii ? to_ascii(words) : std::string(words);
  std::string_view text = spelled;
  std::size_t used = visible_width(current);
  bool empty = true;  // no word on this line yet
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const std::size_t wide = visible_width(word);
    if (!empty && used + 1 + wide > width_) {
      line(current);
      current.assign(hanging, ' ');
      used = hanging;
      empty = true;
    }
    if (!empty) current += ' ';
    current += word;
    used += wide + (empty ? 0 : 1);
    empty = false;
  }
  if (visible_width(current) > 0) line(current);
}

std::string Page::take() {
  if (!style_.ascii) return std::move(out_);
  return to_ascii(out_);
}

}  // namespace stepscope::report
