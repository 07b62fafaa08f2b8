// What operators were given: sizes and types of their inputs, parsed once for each text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/case.h"
#include "model/input_text.h"

namespace stepscope::diagnose {

struct OperatorInputs {
  std::vector<Shape> shapes;        // per input; a number has no sizes
  std::vector<std::string> types;   // as recorded: "float", "c10::BFloat16"
  std::vector<std::string> values;  // of what is no tensor; empty text: a tensor

  bool known() const { return !shapes.empty(); }
  // The first input that is a tensor with sizes; nullptr: none.
  const Sizes* tensor() const;
  // Elements of the largest tensor or list of tensors; 0: none is known.
  std::int64_t elements() const;
  // Of the tensors, one of several elements, any is of this type.
  bool has_type(std::string_view type) const;
  // Of an input that is a whole number; `otherwise`: it is none.
  std::int64_t number(std::size_t input, std::int64_t otherwise) const;
  // Of the product of the first two inputs; empty: these are no two matrices.
  Sizes product() const;
};

class Inputs {
 public:
  // Of the operator itself, empty where they are not recorded.
  const OperatorInputs& of(const Trace& trace, SliceId operation) const;

 private:
  mutable std::map<std::tuple<const Trace*, StringId, StringId, StringId>, OperatorInputs> known_;
};

// Shared by the causes of a case.
const Inputs& inputs(const Case& about);

std::int64_t elements(const Sizes& sizes);

}  // namespace stepscope::diagnose
