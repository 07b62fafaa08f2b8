#include "report/utf8.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stepscope::report {
namespace {

struct Range {
  char32_t first, last;
};

// Characters that take no column (combining marks, joiners, variation selectors) and two columns, in coarse blocks:
// a wrong guess shifts one line of a table, nothing else.
constexpr std::array kZeroWidth{Range{0x0300, 0x036F}, Range{0x1AB0, 0x1AFF}, Range{0x1DC0, 0x1DFF},
                                Range{0x200B, 0x200F}, Range{0x20D0, 0x20FF}, Range{0xFE00, 0xFE0F},
                                Range{0xFE20, 0xFE2F}};
constexpr std::array kDoubleWidth{Range{0x1100, 0x115F},   Range{0x2E80, 0x303E},   Range{0x3041, 0xA4CF},
                                  Range{0xAC00, 0xD7A3},   Range{0xF900, 0xFAFF},   Range{0xFE30, 0xFE6F},
                                  Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},   Range{0x1F300, 0x1F64F},
                                  Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1FAFF}, Range{0x20000, 0x3FFFD}};

template <std::size_t N>
bool contains(const std::array<Range, N>& ranges, char32_t value) {
  return std::any_of(ranges.begin(), ranges.end(), [&](Range r) { return value >= r.first && value <= r.last; });
}

constexpr std::array<std::pair<char32_t, std::string_view>, 26> kAsciiSpellings{{
    {U'µ', "u"},      {U'·', "-"},      {U'×', "x"},   {U'±', "+-"}, {U'–', "-"},  {U'—', "-"},   {U'…', "~"},
    {U'‘', "'"},      {U'’', "'"},      {U'“', "\""},  {U'”', "\""}, {U'→', "->"}, {U'↔', "<->"}, {U'≤', "<="},
    {U'≥', ">="},     {U'─', "-"},      {U'│', "|"},   {U'█', "#"},  {U'▓', "+"},  {U'▒', "="},   {U'░', "."},
    {U'\u00A0', " "}, {U'\u202F', " "}, {U'Σ', "sum"}, {U'−', "-"},  {U'✓', "ok"},
}};

constexpr CodePoint kInvalid{kReplacement, 1, false};

}  // namespace

CodePoint decode_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned { return static_cast<unsigned char>(text[at + i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::uint32_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < length) return kInvalid;
  char32_t value = lead & (0x7Fu >> length);
  for (std::uint32_t i = 1; i < length; i++) {
    if ((byte(i) & 0xC0) != 0x80) return kInvalid;
    value = (value << 6) | (byte(i) & 0x3F);
  }
  static constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < smallest[length] || value > 0x10FFFF || surrogate) return kInvalid;
  return {value, length, true};
}

void append_utf8(std::string& out, char32_t value) {
  const auto put = [&](char32_t bits) { out += static_cast<char>(static_cast<unsigned char>(bits)); };
  if (value < 0x80) return put(value);
  if (value < 0x800) {
    put(0xC0 | (value >> 6));
  } else {
    if (value < 0x10000) {
      put(0xE0 | (value >> 12));
    } else {
      put(0xF0 | (value >> 18));
      put(0x80 | ((value >> 12) & 0x3F));
    }
    put(0x80 | ((value >> 6) & 0x3F));
  }
  put(0x80 | (value & 0x3F));
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_at(text, at);
    if (point.valid) {
      out.append(text, at, point.bytes);
    } else {
      append_utf8(out, kReplacement);
    }
    at += point.bytes;
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_at(text, at);
    at += point.bytes;
    if (point.value < 0x300) {
      width++;
    } else if (!contains(kZeroWidth, point.value)) {
      width += contains(kDoubleWidth, point.value) ? 2 : 1;
    }
  }
  return width;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_at(text, at);
    at += point.bytes;
    // C1 controls and the characters that turn the direction of writing can spoil a terminal as ESC can.
    const bool turns =
        (point.value >= 0x202A && point.value <= 0x202E) || (point.value >= 0x2066 && point.value <= 0x2069);
    if (point.value == '\t' || point.value == '\n' || point.value == '\r') {
      out += ' ';
    } else if (point.value < 0x20 || (point.value >= 0x7F && point.value < 0xA0) || turns) {
      append_utf8(out, kReplacement);
    } else {
      append_utf8(out, point.value);
    }
  }
  return out;
}

std::string to_ascii(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_at(text, at);
    at += point.bytes;
    if (point.value < 0x80) {
      out += static_cast<char>(point.value);
      continue;
    }
    const auto found = std::find_if(kAsciiSpellings.begin(), kAsciiSpellings.end(),
                                    [&](const auto& s) { return s.first == point.value; });
    out += found == kAsciiSpellings.end() ? "?" : found->second;
  }
  return out;
}

}  // namespace stepscope::report
