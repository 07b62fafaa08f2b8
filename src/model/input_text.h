// What an operator was given, as the profiler writes it: texts of sizes, types and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepscope {

using Sizes = std::vector<std::int64_t>;

// One input of an operator: the sizes of a tensor (none for a number), or those of each tensor of a list.
struct Shape {
  Sizes sizes;
  std::vector<Sizes> list;  // lists of lists stand one after the other
};

// [[8,64],[],[[4],[4]]]; what is no such text has no shapes.
std::vector<Shape> parse_shapes(std::string_view json);
// ["", "[1, 1]", "True"]; empty for a text that is none.
std::vector<std::string> parse_texts(std::string_view json);
// "[1, 1]" → 1, 1.
std::optional<Sizes> parse_sizes(std::string_view text);
// "True", "False" and lists of them: the truths in order.
std::optional<std::vector<bool>> parse_truths(std::string_view text);

}  // namespace stepscope
