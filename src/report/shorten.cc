#include "report/shorten.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "report/utf8.h"

namespace stepscope::report {
namespace {

constexpr std::string_view kCalledBy = " < ";  // between the frames of a stack

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

void erase_all(std::string& text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
}

// Cuts the parameter list at the end, minding nested brackets. Not every name that ends with a bracket is a function:
// in "Memcpy HtoD (Pinned -> Device)" the bracket follows a space. Says whether it was one.
bool drop_parameters(std::string& name) {
  if (!name.ends_with(')')) return false;
  int depth = 0;
  for (std::size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')') depth++;
    if (name[at] != '(' || --depth > 0) continue;
    const bool is_function = at > 0 && (is_word(name[at - 1]) || name[at - 1] == '>');
    if (is_function) name.resize(at);
    return is_function;
  }
  return false;
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

// `text` in at most `width` columns, "…" at the end where something was cut.
std::string cut_end(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  std::size_t at = 0, used = 1;
  while (at < text.size()) {
    const CodePoint point = decode_at(text, at);
    used += display_width(text.substr(at, point.bytes));
    if (used > width) break;
    at += point.bytes;
  }
  return width == 0 ? "" : std::string(text.substr(0, at)) + "…";
}

// Frames of a stack, "model.py:42 forward < train.py:9 step": the innermost, which stand first, say most.
std::string first_frames(std::string_view frames, std::size_t width) {
  constexpr std::string_view kMore = " < …";
  for (std::size_t end = frames.rfind(kCalledBy); end != frames.npos; end = frames.rfind(kCalledBy, end - 1)) {
    std::string shorter = std::string(frames.substr(0, end)) + std::string(kMore);
    if (display_width(shorter) <= width) return shorter;
    if (end == 0) break;
  }
  return cut_end(frames, width);
}

// Without what no reader misses: return type, parameters, anonymous namespaces.
std::string tidied(std::string_view name, bool& is_function) {
  std::string text(name);
  is_function = drop_parameters(text);
  if (text.starts_with("void ")) text.erase(0, 5);
  erase_all(text, "(anonymous namespace)::");
  return text;
}

// The start of the name, then the part from byte `differ` on.
std::string show_from(std::string_view name, std::size_t differ, std::size_t width) {
  const std::size_t frame = name.substr(0, differ).rfind(kCalledBy);
  if (frame != name.npos) differ = frame + kCalledBy.size();
  while (differ > 0 && differ < name.size() && (is_word(name[differ - 1]) || (name[differ] & 0xC0) == 0x80)) differ--;
  const std::size_t head = width / 3;
  if (display_width(name.substr(0, differ)) <= head) return cut_end(name, width);
  std::string start = cut_end(without_namespaces(name.substr(0, differ)), head);
  if (!start.ends_with("…") && display_width(start) < width) start += "…";
  return start + cut_end(name.substr(differ), width - std::min(width, display_width(start)));
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

std::vector<std::string> shorten_names(const std::vector<std::string>& names, std::size_t width) {
  std::vector<std::string> out;
  std::map<std::string, std::vector<std::size_t>> same;  // rows by how they look
  for (std::size_t i = 0; i < names.size(); i++) {
    out.push_back(shorten_name(names[i], width));
    if (out[i] != names[i]) same[out[i]].push_back(i);
  }
  for (const auto& [look, rows] : same) {
    std::vector<std::string> plain;
    bool is_function = false;
    for (const std::size_t row : rows) plain.push_back(tidied(names[row], is_function));
    std::size_t differ = std::string::npos;  // the first place where any two of them differ
    for (const auto& text : plain) {
      const auto [mine, first] = std::mismatch(text.begin(), text.end(), plain[0].begin(), plain[0].end());
      if (mine != text.end() || first != plain[0].end()) {
        differ = std::min(differ, static_cast<std::size_t>(mine - text.begin()));
      }
    }
    if (rows.size() < 2 || differ == std::string::npos) continue;
    for (std::size_t i = 0; i < rows.size(); i++) out[rows[i]] = show_from(plain[i], differ, width);
  }
  return out;
}

std::string shorten_name(std::string_view name, std::size_t width) {
  const auto fits = [&](std::string_view text) { return display_width(text) <= width; };
  if (fits(name)) return std::string(name);
  if (name.find(kCalledBy) != name.npos) return first_frames(name, width);
  bool is_function = false;
  std::string shorter = tidied(name, is_function);
  if (fits(shorter)) return shorter;
  if (is_function || shorter.find('<') != std::string::npos) shorter = without_namespaces(shorter);
  for (int keep = 2; keep >= 1 && !fits(shorter); keep--) shorter = without_inner_arguments(shorter, keep);
  return cut_middle(shorter, width);
}

}  // namespace stepscope::report
