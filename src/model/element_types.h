// Element types of tensors: torch's names for what its profiler spells as C++ types, and their sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stepscope {

// "c10::BFloat16" → "bfloat16"; what is not known stays as it is.
std::string_view element_type(std::string_view spelled);

// Bytes of one element of a type by torch's name; unknown: no such type.
std::optional<std::int64_t> element_bytes(std::string_view type);

// The same however a recorder spells it: "c10::Half", "long int", "Float", "Int8".
std::optional<std::int64_t> recorded_element_bytes(std::string_view type);

// The same by what the name of a kernel says: "…<float, 4>", "…c10::BFloat16…", "…OpaqueType<2u>…".
std::optional<std::int64_t> element_bytes_of_kernel(std::string_view kernel);

}  // namespace stepscope
