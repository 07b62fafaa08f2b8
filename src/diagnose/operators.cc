#include "diagnose/operators.h"

#include <algorithm>
#include <array>

#include "diagnose/passes.h"
#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

constexpr std::string_view kAten = "aten::";

// "aten::add_" → "add".
std::string_view base_name(std::string_view name) {
  if (!name.starts_with(kAten)) return {};
  name.remove_prefix(kAten.size());
  if (name.size() > 1 && name.ends_with('_') && !name.starts_with("__")) name.remove_suffix(1);
  return name;
}

template <std::size_t kCount>
bool is_any(std::string_view name, const std::array<std::string_view, kCount>& of) {
  const std::string_view base = base_name(name);
  return !base.empty() && std::find(of.begin(), of.end(), base) != of.end();
}

}  // namespace

bool is_view(std::string_view name) {
  static constexpr std::array<std::string_view, 26> kViews{
      "view",   "reshape",   "transpose", "t",          "permute",   "unsqueeze", "squeeze",      "expand", "select",
      "slice",  "narrow",    "detach",    "as_strided", "unflatten", "flatten",   "alias",        "split",  "chunk",
      "unbind", "expand_as", "view_as",   "movedim",    "swapaxes",  "mT",        "broadcast_to", "unfold"};
  return is_any(name, kViews);
}

bool is_without_values(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kEmpty{"empty",  "empty_like",        "empty_strided", "new_empty",
                                                          "resize", "new_empty_strided", "empty_permuted"};
  return is_any(name, kEmpty);
}

bool is_elementwise(std::string_view name) {
  const costs::TrafficModel* model = costs::traffic_of(name);
  return model != nullptr && model->family == costs::Family::elementwise;
}

bool is_linear(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kLinear{"add", "sub",     "rsub",    "neg", "mul",
                                                           "div", "addcmul", "addcdiv", "lerp"};
  return is_any(name, kLinear);
}

bool is_put_elsewhere(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kPuts{"copy", "fill", "clone", "to", "_to_copy", "cat", "stack"};
  return is_any(name, kPuts);
}

bool is_reduction(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kReductions{
      "sum", "mean", "amax", "amin", "var", "std", "var_mean", "std_mean", "norm", "linalg_vector_norm", "logsumexp"};
  return is_any(name, kReductions);
}

std::string_view symbol_of(std::string_view name) {
  using Symbol = std::pair<std::string_view, std::string_view>;
  static constexpr std::array<Symbol, 36> kSymbols{{
      {"add", "+"},        {"sub", "-"},        {"rsub", "-"},          {"neg", "-"},         {"mul", "*"},
      {"div", "/"},        {"reciprocal", "/"}, {"floor_divide", "//"}, {"remainder", "%"},   {"pow", "**"},
      {"matmul", "@"},     {"mm", "@"},         {"bmm", "@"},           {"mv", "@"},          {"dot", "@"},
      {"__and__", "&"},    {"__iand__", "&"},   {"bitwise_and", "&"},   {"__or__", "|"},      {"__ior__", "|"},
      {"bitwise_or", "|"}, {"__xor__", "^"},    {"bitwise_xor", "^"},   {"bitwise_not", "~"}, {"eq", "=="},
      {"ne", "!="},        {"lt", "<"},         {"le", "<="},           {"gt", ">"},          {"ge", ">="},
      {"index", "[]"},     {"index_put", "[]"}, {"slice", "[]"},        {"select", "[]"},     {"unsqueeze", "[]"},
      {"copy", "[]"},
  }};
  const std::string_view base = base_name(name);
  const auto found =
      std::find_if(kSymbols.begin(), kSymbols.end(), [&](const Symbol& one) { return one.first == base; });
  return found == kSymbols.end() ? std::string_view() : found->second;
}

bool is_product(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kProducts{
      "mm", "bmm", "addmm", "matmul", "linear", "einsum", "baddbmm", "addbmm", "_addmm_activation"};
  return is_any(name, kProducts);
}

bool is_transcendental(std::string_view name) {
  static constexpr std::array<std::string_view, 22> kHard{
      "tanh", "exp",  "log",  "sin",  "cos",    "erf",     "erfc",  "sigmoid",     "gelu", "silu", "softplus",
      "tan",  "asin", "acos", "atan", "lgamma", "digamma", "log1p", "log_sigmoid", "exp2", "log2", "expm1"};
  return is_any(name, kHard);
}

bool is_by_chance(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kDraws{
      "rand",      "normal", "uniform", "bernoulli",      "exponential",   "multinomial",
      "geometric", "cauchy", "poisson", "native_dropout", "_fused_dropout"};
  return std::any_of(kDraws.begin(), kDraws.end(), [&](auto part) { return name.find(part) != name.npos; });
}

std::string_view optimizer_class(const Trace& trace) {
  constexpr std::string_view kStep = "Optimizer.step#";
  for (const SliceId slice : trace.ops.slice) {
    std::string_view name = trace.name(slice);
    if (!name.starts_with(kStep)) continue;
    name.remove_prefix(kStep.size());
    return name.substr(0, name.find('.'));
  }
  return {};
}

const std::vector<Operator>& forward_operators(const Case& about) {
  return about.shared<std::vector<Operator>>([](const Case& one) {
    std::vector<Operator> out;
    for (const Trace& trace : timelines(one.run)) {
      for (const Operation& operation : one.operations(trace)) {
        const std::string_view name = trace.name(operation.slice);
        if (is_backward(name)) continue;
        if (!out.empty() && out.back().slice == operation.slice && out.back().trace == &trace) continue;
        out.push_back({.trace = &trace,
                       .slice = operation.slice,
                       .name = name,
                       .inputs = &inputs(one).of(trace, operation.slice),
                       .phase = static_cast<Phase>(trace.slices.phase[operation.slice]),
                       .step = trace.step_at(trace.slices.start_ns[operation.slice]),
                       .after = operation.after});
      }
    }
    return out;
  });
}

}  // namespace stepscope::diagnose
