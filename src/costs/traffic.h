// What an operator moves at least, and the arithmetic of what is no product: one model for each kind of operator.
//
// Bytes: each operand is read once and the output written once, as if nothing stayed in a cache and nothing was read
// twice. In place the output is the operand itself. Arithmetic of what is no product is the textbook's, in operations
// on each element: 1 for an addition or a tanh alike, 5 for a softmax. Sizes are those recorded; of an operand that was
// expanded all of its elements count.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "costs/inputs.h"

namespace stepscope::costs {

enum class Family : std::uint8_t {
  matrices,  // products of matrices and vectors
  convolution,
  attention,
  recurrent,
  normalization,
  softmax,
  reduction,
  elementwise,
  embedding,
  indexing,  // gather, scatter and their kin: also how experts get their tokens
  sorting,
  pooling,
  loss,
  optimizer,
  copy,
  fused,   // of a compiler: several operators in one kernel
  custom,  // by a rule, or by what a range says
};
inline constexpr std::size_t kFamilies = 17;
std::string_view to_string(Family family);

struct Work {
  std::optional<std::int64_t> flop, bytes;
};

// The inputs of a call with the sizes of their elements.
class Operands {
 public:
  // `types`: torch's names by input. `list_bytes`: of an element in a list of tensors, whose types are not recorded.
  Operands(Inputs inputs, std::vector<std::string_view> types, std::optional<std::int64_t> list_bytes,
           bool writes_first)
      : in(inputs), in_place(writes_first), types_(std::move(types)), list_bytes_(list_bytes) {}

  std::optional<std::int64_t> element(std::size_t at) const;   // bytes of one
  std::optional<std::int64_t> elements(std::size_t at) const;  // of a tensor or of all tensors in a list
  std::optional<std::int64_t> bytes(std::size_t at) const;
  // Of all tensors and lists among the inputs [first, last).
  std::optional<std::int64_t> bytes_of(std::size_t first, std::size_t last = ~std::size_t{0}) const;

  Inputs in;
  bool in_place;

 private:
  std::vector<std::string_view> types_;
  std::optional<std::int64_t> list_bytes_;
};

struct TrafficModel {
  Family family;
  // Of a product only the bytes; its FLOP has a formula.
  Work (*work)(const Operands& operands);
  bool unless_below = false;  // counts where nothing below it does: lists, whose types only the single calls know
};

// nullptr: nobody wrote a model for it, or it is made of others, which have one.
const TrafficModel* traffic_of(std::string_view op);

// Does torch write into the first operand? "aten::add_".
bool is_in_place(std::string_view op);

}  // namespace stepscope::costs
