#include "formats/base64.h"

#include <array>

namespace stepscope::formats {
namespace {

constexpr std::uint8_t kNone = 0xff;

constexpr std::array<std::uint8_t, 256> make_values() {
  constexpr std::string_view kCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  for (std::size_t i = 0; i < kCharacters.size(); i++) {
    values[static_cast<unsigned char>(kCharacters[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}

constexpr std::array<std::uint8_t, 256> kValues = make_values();

}  // namespace

std::size_t Base64::decode(std::string_view text, char* out) {
  const char* const first = out;
  for (const char character : text) {
    const std::uint8_t value = kValues[static_cast<unsigned char>(character)];
    ended_ = ended_ || value == kNone;
    if (ended_) break;
    bits_ = bits_ << 6 | value;
    count_ += 6;
    if (count_ < 8) continue;
    count_ -= 8;
    *out++ = static_cast<char>(bits_ >> count_ & 0xff);
  }
  return static_cast<std::size_t>(out - first);
}

}  // namespace stepscope::formats
