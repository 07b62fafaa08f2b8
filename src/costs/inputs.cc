#include "costs/inputs.h"

#include "model/element_types.h"

namespace stepscope::costs {

Inputs TraceInputs::of(std::uint32_t row) {
  const auto parsed = [&](auto& known, StringId text, auto parse) -> const auto& {
    const auto [found, fresh] = known.try_emplace(text);
    if (fresh) found->second = parse(trace_.strings[text]);
    return found->second;
  };
  return {parsed(shapes_, trace_.ops.input_dims[row], parse_shapes),
          parsed(texts_, trace_.ops.concrete_inputs[row], parse_texts)};
}

std::string_view TraceInputs::type(std::uint32_t row, std::size_t at) {
  const StringId text = trace_.ops.input_types[row];
  const auto [found, fresh] = texts_.try_emplace(text);
  if (fresh) found->second = parse_texts(trace_.strings[text]);
  if (at >= found->second.size()) return {};
  return element_type(found->second[at]);
}

}  // namespace stepscope::costs
