#include "diagnose/inputs.h"

#include <algorithm>
#include <charconv>

#include "model/lookup.h"

namespace stepscope::diagnose {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 62;

}  // namespace

std::int64_t elements(const Sizes& sizes) {
  double product = 1;
  for (const std::int64_t size : sizes) product *= static_cast<double>(std::max<std::int64_t>(size, 0));
  return product < static_cast<double>(kMostElements) ? static_cast<std::int64_t>(product) : kMostElements;
}

const Sizes* OperatorInputs::tensor() const {
  for (const Shape& shape : shapes) {
    if (!shape.sizes.empty()) return &shape.sizes;
  }
  return nullptr;
}

std::int64_t OperatorInputs::elements() const {
  std::int64_t most = 0;
  for (const Shape& shape : shapes) {
    if (!shape.sizes.empty()) most = std::max(most, diagnose::elements(shape.sizes));
    std::int64_t sum = 0;
    for (const Sizes& one : shape.list) sum += std::min(diagnose::elements(one), kMostElements - sum);
    most = std::max(most, sum);
  }
  return most;
}

bool OperatorInputs::has_type(std::string_view type) const {
  for (std::size_t i = 0; i < std::min(types.size(), shapes.size()); i++) {
    if (types[i] == type && !shapes[i].sizes.empty()) return true;
  }
  return false;
}

std::int64_t OperatorInputs::number(std::size_t input, std::int64_t otherwise) const {
  if (input >= values.size()) return otherwise;
  const std::string& text = values[input];
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

Sizes OperatorInputs::product() const {
  if (shapes.size() < 2 || shapes[0].sizes.size() != 2 || shapes[1].sizes.size() != 2) return {};
  return {shapes[0].sizes[0], shapes[1].sizes[1]};
}

const OperatorInputs& Inputs::of(const Trace& trace, SliceId operation) const {
  static const OperatorInputs kUnknown;
  const std::size_t row = row_of(trace.ops.slice, operation);
  if (row == trace.ops.size() || trace.ops.input_dims[row] == StringId::none) return kUnknown;
  const StringId dims = trace.ops.input_dims[row], types = trace.ops.input_types[row];
  const StringId values = trace.ops.concrete_inputs[row];
  const auto [known, is_new] = known_.try_emplace({&trace, dims, types, values});
  if (is_new) {
    known->second.shapes = parse_shapes(trace.strings[dims]);
    if (types != StringId::none) known->second.types = parse_texts(trace.strings[types]);
    if (values != StringId::none) known->second.values = parse_texts(trace.strings[values]);
  }
  return known->second;
}

const Inputs& inputs(const Case& about) {
  return about.shared<Inputs>([](const Case&) { return Inputs(); });
}

}  // namespace stepscope::diagnose
