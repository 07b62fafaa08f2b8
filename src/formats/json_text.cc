#include "formats/json_text.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace stepscope::formats {
namespace {

void put_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 63));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 63));
    out += static_cast<char>(0x80 | (code & 63));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 63));
    out += static_cast<char>(0x80 | (code >> 6 & 63));
    out += static_cast<char>(0x80 | (code & 63));
  }
}

void put_visible(std::string& out, unsigned char byte) {
  static constexpr char hex[] = "0123456789abcdef";
  out += "\\x";
  out += hex[byte >> 4];
  out += hex[byte & 15];
}

// Length of the valid UTF-8 sequence at text[i] (lead byte >= 0x80), 0 when it is none.
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
  const auto follows = [&](std::size_t k) { return (byte(k) & 0xC0) == 0x80; };
  const unsigned lead = byte(i);
  if (lead >= 0xC2 && lead < 0xE0) return follows(i + 1) ? 2 : 0;
  if (lead >= 0xE0 && lead < 0xF0) {
    if (!follows(i + 1) || !follows(i + 2)) return 0;
    if (lead == 0xE0 && byte(i + 1) < 0xA0) return 0;
    return lead == 0xED && byte(i + 1) >= 0xA0 ? 0 : 3;
  }
  if (lead >= 0xF0 && lead < 0xF5) {
    if (!follows(i + 1) || !follows(i + 2) || !follows(i + 3)) return 0;
    if (lead == 0xF0 && byte(i + 1) < 0x90) return 0;
    return lead == 0xF4 && byte(i + 1) >= 0x90 ? 0 : 4;
  }
  return 0;
}

// The character at raw[i], which is no printable ASCII; returns the position behind it.
std::size_t put_odd(std::string_view raw, std::size_t i, std::string& out, bool& repaired) {
  const auto byte = static_cast<unsigned char>(raw[i]);
  if (const std::size_t length = byte >= 0x80 ? utf8_length(raw, i) : 0) {
    out.append(raw, i, length);
    return i + length;
  }
  if (byte == '\n' || byte == '\r' || byte == '\t') {
    out += static_cast<char>(byte);
  } else {
    put_visible(out, byte);
    repaired = true;
  }
  return i + 1;
}

bool hex4(std::string_view raw, std::size_t i, std::uint32_t& code) {
  if (i + 4 > raw.size()) return false;
  code = 0;
  for (std::size_t k = i; k < i + 4; k++) {
    const char c = raw[k];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return false;
    code = code * 16 + static_cast<std::uint32_t>(digit);
  }
  return true;
}

// One \uXXXX (or pair) at raw[i] == '\\'; returns the position behind it, i when it is malformed.
std::size_t unescape_unicode(std::string_view raw, std::size_t i, std::string& out, bool& repaired) {
  std::uint32_t code = 0, low = 0;
  if (!hex4(raw, i + 2, code)) return i;
  if (code >= 0xD800 && code < 0xDC00 && i + 7 < raw.size() && raw[i + 6] == '\\' && raw[i + 7] == 'u' &&
      hex4(raw, i + 8, low) && low >= 0xDC00 && low < 0xE000) {
    put_utf8(out, 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00));
    return i + 12;
  }
  if (code >= 0xD800 && code < 0xE000) {
    code = 0xFFFD;
    repaired = true;
  }
  put_utf8(out, code);
  return i + 6;
}

}  // namespace

bool is_clean(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\' || static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

std::string visible(std::string_view bytes, bool& repaired) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (byte >= 0x80 || byte < 0x20) {
      i = put_odd(bytes, i, out, repaired);
    } else {
      out += bytes[i++];
    }
  }
  return out;
}

std::string unescape(std::string_view raw, bool& repaired) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size();) {
    const auto byte = static_cast<unsigned char>(raw[i]);
    if (byte >= 0x80 || byte < 0x20) {
      repaired |= byte < 0x20;
      i = put_odd(raw, i, out, repaired);
    } else if (byte != '\\' || i + 1 == raw.size()) {
      repaired |= byte == '\\';
      out += static_cast<char>(byte);
      i++;
    } else {
      static constexpr std::string_view plain = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
      if (const auto which = plain.find(raw[i + 1]); which != std::string_view::npos) {
        out += meant[which];
        i += 2;
        continue;
      }
      const std::size_t next = raw[i + 1] == 'u' ? unescape_unicode(raw, i, out, repaired) : i;
      if (next == i) {  // no escape that JSON knows: a lone backslash, as in a Windows path
        out += '\\';
        repaired = true;
        i++;
      } else {
        i = next;
      }
    }
  }
  return out;
}

std::size_t skip_space(std::string_view text, std::size_t begin) {
  while (begin < text.size() &&
         (text[begin] == ' ' || text[begin] == '\n' || text[begin] == '\r' || text[begin] == '\t'))
    begin++;
  return begin;
}

namespace {

std::size_t skip_string(std::string_view text, std::size_t begin) {
  for (std::size_t i = begin + 1; i < text.size(); i++) {
    if (text[i] == '\\') {
      i++;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::size_t skip_value(std::string_view text, std::size_t begin) {
  if (begin >= text.size()) return std::string_view::npos;
  if (text[begin] == '"') return skip_string(text, begin);
  if (text[begin] != '{' && text[begin] != '[') {
    const std::size_t end = text.find_first_of(",}] \n\r\t", begin);
    return end;
  }
  std::size_t depth = 0;
  for (std::size_t i = begin; i < text.size(); i++) {
    const char c = text[i];
    if (c == '"') {
      i = skip_string(text, i);
      if (i == std::string_view::npos) return i;
      i--;
    } else if (c == '{' || c == '[') {
      depth++;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

std::vector<RawMember> members(std::string_view text, std::size_t* end) {
  std::vector<RawMember> found;
  std::size_t at = 1;
  std::size_t understood = at;
  bool repaired = false;
  while (true) {
    at = skip_space(text, at);
    if (at < text.size() && text[at] == ',') at = skip_space(text, at + 1);
    if (at < text.size() && text[at] == '}') understood = at + 1;
    if (at >= text.size() || text[at] != '"') break;
    const std::size_t key_end = skip_string(text, at);
    if (key_end == std::string_view::npos) break;
    const std::size_t colon = skip_space(text, key_end);
    if (colon >= text.size() || text[colon] != ':') break;
    const std::size_t begin = skip_space(text, colon + 1);
    const std::size_t stop = skip_value(text, begin);
    if (stop == std::string_view::npos) break;
    const std::string_view raw_key = text.substr(at + 1, key_end - at - 2);
    found.push_back({unescape(raw_key, repaired), raw_key, text.substr(begin, stop - begin)});
    understood = at = stop;
  }
  if (end != nullptr) *end = understood;
  return found;
}

std::string value_text(std::string_view raw) {
  bool repaired = false;
  if (raw.size() >= 2 && raw.front() == '"' && raw.back() == '"')
    return unescape(raw.substr(1, raw.size() - 2), repaired);
  return std::string(raw);
}

long long value_int(std::string_view raw, long long otherwise) {
  const std::string text = value_text(raw);
  char* stop = nullptr;
  const long long whole = std::strtoll(text.c_str(), &stop, 10);
  if (!text.empty() && *stop == '\0') return whole;
  const double real = std::strtod(text.c_str(), &stop);
  const bool usable = !text.empty() && *stop == '\0' && std::isfinite(real) && std::fabs(real) < 9e18;
  return usable ? static_cast<long long>(real) : otherwise;
}

}  // namespace stepscope::formats
