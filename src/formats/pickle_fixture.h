// Pickles that tests write by hand, piece by piece. Not part of the program.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace stepscope::pickle_fixture {

// A number as it lies in a pickle: little endian.
inline std::string bytes_of(std::uint64_t number, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; i++) text += static_cast<char>(number >> (8 * i));
  return text;
}

inline std::string text(std::string_view value) { return "X" + bytes_of(value.size(), 4) + std::string(value); }
inline std::string integer(std::uint64_t value) { return "\x8a\x08" + bytes_of(value, 8); }
inline std::string list(std::initializer_list<std::string> items) {
  std::string all = "](";
  for (const std::string& item : items) all += item;
  return all + "e";
}
inline std::string tuple(const std::string& first, const std::string& second) { return first + second + "\x86"; }
inline std::string dict(std::initializer_list<std::pair<std::string_view, std::string>> pairs) {
  std::string all = "}(";
  for (const auto& [key, value] : pairs) all += text(key) + value;
  return all + "u";
}
inline const std::string kNone = "N", kTrue = "\x88", kFalse = "\x89", kMemoize = "\x94";

inline std::string get(std::uint8_t index) { return std::string("h") + static_cast<char>(index); }
inline std::string repeated(std::string_view piece, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; i++) all += piece;
  return all;
}
inline std::string pickle(const std::string& value) { return "\x80\x04" + value + "."; }

}  // namespace stepscope::pickle_fixture
