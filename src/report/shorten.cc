#include "report/shorten.h"

#include <algorithm>
#include <cctype>

#include "report/utf8.h"

namespace stepscope::report {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

void erase_all(std::string& text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
}

// Does it look like a demangled C++ function, in contrast to "aten::mm" or "module.py(12): forward"?
bool is_cpp_signature(std::string_view name) {
  return name.ends_with(')') &&
         (name.starts_with("void ") || name.find("::") != name.npos || name.find('<') != name.npos);
}

// Cuts the parameter list at the end, minding nested brackets.
void drop_parameters(std::string& name) {
  int depth = 0;
  for (std::size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')') depth++;
    if (name[at] == '(' && --depth == 0) {
      if (at > 0) name.resize(at);
      return;
    }
  }
}

// "at::native::f<c10::Half>" to "f<Half>".
std::string without_namespaces(std::string_view name) {
  std::string out;
  std::size_t word = 0;  // where the current qualified name starts in `out`
  for (std::size_t at = 0; at < name.size(); at++) {
    if (name.substr(at, 2) == "::" && at > 0 && is_word(name[at - 1])) {
      out.resize(word);
      at++;
      continue;
    }
    out += name[at];
    if (!is_word(name[at])) word = out.size();
  }
  return out;
}

// Drops template arguments nested deeper than `keep` levels.
std::string without_inner_arguments(std::string_view name, int keep) {
  std::string out;
  int depth = 0;
  for (std::size_t at = 0; at < name.size(); at++) {
    const char c = name[at];
    if (c == '>' && at > 0 && name[at - 1] == '-') continue;  // the arrow of a trailing return type
    if (c == '<') depth++;
    if (depth <= keep) out += c;
    if (c == '>' && depth > 0) depth--;
  }
  return out;
}

}  // namespace

std::string cut_middle(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  const std::size_t tail_width = (width - 1) * 2 / 5;
  const std::size_t head_width = width - 1 - tail_width;
  const auto end_of = [&](std::size_t columns) {  // first byte after that many columns
    std::size_t at = 0, used = 0;
    while (at < text.size()) {
      const CodePoint point = decode_at(text, at);
      const std::size_t wide = display_width(text.substr(at, point.bytes));
      if (used + wide > columns) break;
      used += wide;
      at += point.bytes;
    }
    return at;
  };
  const std::size_t total = display_width(text);
  std::size_t tail = end_of(total - tail_width);
  // A wide character on the border may leave the tail one column too long.
  while (tail < text.size() && display_width(text.substr(tail)) > tail_width) tail += decode_at(text, tail).bytes;
  return std::string(text.substr(0, end_of(head_width))) + "…" + std::string(text.substr(tail));
}

std::string shorten_name(std::string_view name, std::size_t width) {
  const auto fits = [&](std::string_view text) { return display_width(text) <= width; };
  std::string shorter(name);
  if (fits(shorter)) return shorter;
  if (is_cpp_signature(shorter)) drop_parameters(shorter);
  if (shorter.starts_with("void ")) shorter.erase(0, 5);
  erase_all(shorter, "(anonymous namespace)::");
  if (fits(shorter)) return shorter;
  if (shorter.find('<') != std::string::npos || is_cpp_signature(name)) shorter = without_namespaces(shorter);
  for (int keep = 2; keep >= 1 && !fits(shorter); keep--) shorter = without_inner_arguments(shorter, keep);
  return cut_middle(shorter, width);
}

}  // namespace stepscope::report
