#include "model/element_types.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text_parts.h"

namespace stepscope {
namespace {

struct Type {
  std::string_view spelled, name;
  std::int64_t bytes;
};

constexpr std::array kTypes{
    Type{"float", "float32", 4},
    Type{"double", "float64", 8},
    Type{"c10::Half", "float16", 2},
    Type{"c10::BFloat16", "bfloat16", 2},
    Type{"c10::Float8_e4m3fn", "float8_e4m3fn", 1},
    Type{"c10::Float8_e5m2", "float8_e5m2", 1},
    Type{"c10::Float8_e4m3fnuz", "float8_e4m3fnuz", 1},
    Type{"c10::Float8_e5m2fnuz", "float8_e5m2fnuz", 1},
    Type{"c10::Float8_e8m0fnu", "float8_e8m0fnu", 1},
    Type{"c10::Float4_e2m1fn_x2", "float4_e2m1fn_x2", 1},  // two numbers, which count as one element in sizes
    Type{"bool", "bool", 1},
    Type{"signed char", "int8", 1},
    Type{"unsigned char", "uint8", 1},
    Type{"short", "int16", 2},
    Type{"int", "int32", 4},
    Type{"long", "int64", 8},
    Type{"long int", "int64", 8},
    Type{"unsigned short", "uint16", 2},
    Type{"unsigned int", "uint32", 4},
    Type{"unsigned long", "uint64", 8},
    Type{"c10::complex<float>", "complex64", 8},
    Type{"c10::complex<double>", "complex128", 16},
};

// As they stand in names of kernels, the longer before what they contain.
struct Mark {
  std::string_view text;
  std::int64_t bytes;
};
constexpr std::array kMarks{
    Mark{"OpaqueType<16", 16}, Mark{"OpaqueType<8", 8}, Mark{"OpaqueType<4", 4}, Mark{"OpaqueType<2", 2},
    Mark{"OpaqueType<1", 1},   Mark{"BFloat16", 2},     Mark{"bfloat16", 2},     Mark{"c10::Half", 2},
    Mark{"__half", 2},         Mark{"Float8", 1},       Mark{"double", 8},       Mark{"float", 4},
};

}  // namespace

std::string_view element_type(std::string_view spelled) {
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& t) { return t.spelled == spelled; });
  return found == kTypes.end() ? spelled : found->name;
}

std::optional<std::int64_t> element_bytes(std::string_view type) {
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& t) { return t.name == type; });
  return found == kTypes.end() ? std::nullopt : std::optional<std::int64_t>(found->bytes);
}

std::optional<std::int64_t> recorded_element_bytes(std::string_view dtype) {
  if (const auto known = element_bytes(element_type(dtype))) return known;
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 26> sizes{{
      {"float", 4},       {"double", 8},     {"half", 2},         {"bfloat", 2},
      {"long", 8},        {"int", 4},        {"short", 2},        {"byte", 1},
      {"char", 1},        {"bool", 1},       {"floatemfn", 1},    {"floatem", 1},
      {"floatemfnuz", 1}, {"floatemuz", 1},  {"complexfloat", 8}, {"complexdouble", 16},
      {"complexhalf", 4}, {"uint", 4},       {"uchar", 1},        {"cfloat", 8},
      {"cdouble", 16},    {"qint", 1},       {"quint", 1},        {"ushort", 2},
      {"ulong", 8},       {"floatemfnz", 1},
  }};
  // Types with a width in their name are not decided by letters alone.
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 12> exact{{
      {"Float8_e4m3fn", 1},
      {"Float8_e5m2", 1},
      {"Float8_e4m3fnuz", 1},
      {"Float8_e5m2fnuz", 1},
      {"UInt16", 2},
      {"UInt32", 4},
      {"UInt64", 8},
      {"Int8", 1},
      {"UInt8", 1},
      {"Int32", 4},
      {"Int64", 8},
      {"Float8_e8m0fnu", 1},
  }};
  for (const auto& [name, bytes] : exact) {
    if (name == dtype) return bytes;
  }
  const std::string text = lower_letters(dtype);
  for (const auto& [name, bytes] : sizes) {
    if (name == text) return bytes;
  }
  return std::nullopt;
}

std::optional<std::int64_t> element_bytes_of_kernel(std::string_view kernel) {
  const auto* found = std::find_if(kMarks.begin(), kMarks.end(),
                                   [&](const Mark& mark) { return kernel.find(mark.text) != kernel.npos; });
  return found == kMarks.end() ? std::nullopt : std::optional<std::int64_t>(found->bytes);
}

}  // namespace stepscope
