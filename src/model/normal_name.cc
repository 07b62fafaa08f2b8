#include "model/normal_name.h"

#include <array>

namespace stepscope {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

std::size_t skip_digits(std::string_view name, std::size_t at) {
  while (at < name.size() && is_digit(name[at])) at++;
  return at;
}

// Length of ", seq = 45" and its like at `at`; 0: there is none.
std::size_t counter_at(std::string_view name, std::size_t at) {
  static constexpr std::array<std::string_view, 4> kCounters{", seq = ", ", op_id = ", ", seq=", ", op_id="};
  for (const std::string_view counter : kCounters) {
    if (!name.substr(at).starts_with(counter)) continue;
    const std::size_t digits = at + counter.size(), end = skip_digits(name, digits);
    if (end > digits) return end - at;
  }
  return 0;
}

}  // namespace

std::string normal_name(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  for (std::size_t at = 0; at < name.size();) {
    if (const std::size_t counter = name[at] == ',' ? counter_at(name, at) : 0; counter > 0) {
      at += counter;
    } else if (name[at] == '#') {
      out += '#';
      at = skip_digits(name, at + 1);
    } else if (name.substr(at).starts_with("0x") && at + 2 < name.size() && is_hex(name[at + 2])) {
      out += "0x";
      for (at += 2; at < name.size() && is_hex(name[at]);) at++;
    } else {
      out += name[at++];
    }
  }
  return out;
}

}  // namespace stepscope
