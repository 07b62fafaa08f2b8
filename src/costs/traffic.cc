#include "costs/traffic.h"

#include <array>
#include <initializer_list>
#include <unordered_map>

#include "costs/counts.h"
#include "costs/traffic_models.h"
#include "model/element_types.h"

namespace stepscope::costs {
namespace {

// ---- which operators are of which kind: names without "aten::", and without the "_" of what works in place ----

using Names = std::initializer_list<std::string_view>;
using Table = std::unordered_map<std::string_view, TrafficModel>;

void add_elementwise(Table& table) {
  const auto all = [&](Names names, auto model, Family family = Family::elementwise) {
    for (const std::string_view name : names) table[name] = {family, model};
  };
  all({"add",
       "sub",
       "mul",
       "div",
       "rsub",
       "neg",
       "abs",
       "sign",
       "sgn",
       "square",
       "pow",
       "sqrt",
       "rsqrt",
       "exp",
       "exp2",
       "expm1",
       "log",
       "log1p",
       "log2",
       "log10",
       "sin",
       "cos",
       "tan",
       "tanh",
       "sigmoid",
       "erf",
       "erfc",
       "reciprocal",
       "floor",
       "ceil",
       "round",
       "trunc",
       "frac",
       "fmod",
       "remainder",
       "clamp",
       "clamp_min",
       "clamp_max",
       "maximum",
       "minimum",
       "fmax",
       "fmin",
       "relu",
       "relu6",
       "leaky_relu",
       "elu",
       "gelu",
       "silu",
       "mish",
       "hardtanh",
       "hardswish",
       "hardsigmoid",
       "softplus",
       "threshold",
       "logit",
       "atan2",
       "bitwise_and",
       "bitwise_or",
       "bitwise_xor",
       "bitwise_not",
       "bitwise_left_shift",
       "bitwise_right_shift",
       "floor_divide",
       "atan",
       "asin",
       "acos",
       "sinh",
       "cosh",
       "log_sigmoid_forward",
       "ldexp",
       "xlogy",
       "nan_to_num",
       "heaviside",
       "copysign",
       "hypot",
       "prelu",
       "_prelu_kernel"},
      traffic::elementwise<1>);
  all({"gelu_backward", "silu_backward", "tanh_backward", "sigmoid_backward", "threshold_backward", "hardtanh_backward",
       "hardswish_backward", "hardsigmoid_backward", "leaky_relu_backward", "elu_backward", "softplus_backward",
       "mish_backward", "log_sigmoid_backward", "native_dropout_backward", "logit_backward", "glu_backward"},
      traffic::elementwise<2>);
  all({"addcmul", "addcdiv", "lerp", "masked_scale"}, traffic::elementwise<3>);
  all({"where", "masked_fill", "polar", "complex"}, traffic::elementwise<0>);
  all({"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_not",
       "logical_xor", "isposinf", "isneginf", "signbit"},
      traffic::compare);
  all({"fill", "zero", "bernoulli", "uniform", "normal", "random", "exponential", "geometric", "log_normal", "cauchy"},
      traffic::write);
  all({"native_dropout", "_fused_dropout"}, traffic::dropout);
  all({"copy"}, traffic::copy, Family::copy);
  all({"flip", "roll", "tril", "triu", "split_with_sizes_copy", "_pad_packed_sequence"}, traffic::rearrange,
      Family::copy);
  all({"cat", "_chunk_cat"}, traffic::concatenate, Family::copy);
  all({"mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward", "binary_cross_entropy_backward"},
      traffic::elementwise<3>, Family::loss);
}

void add_over_sizes(Table& table) {
  const auto all = [&](Names names, auto model, Family family) {
    for (const std::string_view name : names) table[name] = {family, model};
  };
  all({"sum", "mean", "prod", "amax", "amin", "any", "all", "nansum", "logsumexp", "count_nonzero", "aminmax"},
      traffic::reduce<1, 1>, Family::reduction);
  all({"max", "min", "argmax", "argmin", "median", "mode"}, traffic::reduce<1, 1>, Family::reduction);
  all({"std", "var", "var_mean", "std_mean"}, traffic::reduce<3, 1>, Family::reduction);
  all({"norm", "linalg_vector_norm"}, traffic::reduce<2, 2>, Family::reduction);
  all({"cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"}, traffic::scan<1>, Family::reduction);
  all({"_softmax", "_log_softmax", "_masked_softmax"}, traffic::scan<5>, Family::softmax);
  all({"_softmax_backward_data", "_log_softmax_backward_data", "_masked_softmax_backward"}, traffic::scan_backward<4>,
      Family::softmax);
  // mean, variance, subtract, scale; weight and bias: a textbook's 8 for each element, 4 without a mean
  all({"native_layer_norm", "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update",
       "cudnn_batch_norm", "miopen_batch_norm", "native_group_norm", "batch_norm_elemt",
       "_batch_norm_with_update_functional"},
      traffic::normalize<8>, Family::normalization);
  all({"_fused_rms_norm"}, traffic::normalize<4>, Family::normalization);
  all({"native_layer_norm_backward", "native_batch_norm_backward", "batch_norm_backward", "native_group_norm_backward"},
      traffic::normalize_backward<12, 1>, Family::normalization);
  all({"cudnn_batch_norm_backward", "miopen_batch_norm_backward"}, traffic::normalize_backward<12, 0>,
      Family::normalization);
  all({"_fused_rms_norm_backward"}, traffic::normalize_backward<8, 1>, Family::normalization);
  all({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
       "binary_cross_entropy_with_logits"},
      traffic::reduce<3, 9>, Family::loss);
  all({"nll_loss_forward", "nll_loss2d_forward"}, traffic::nll, Family::loss);
  all({"nll_loss_backward", "nll_loss2d_backward"}, traffic::nll_backward, Family::loss);
}

void add_places(Table& table) {
  const auto all = [&](Names names, auto model, Family family) {
    for (const std::string_view name : names) table[name] = {family, model};
  };
  all({"embedding"}, traffic::embedding, Family::embedding);
  all({"embedding_dense_backward"}, traffic::embedding_backward, Family::embedding);
  all({"index_select"}, traffic::select, Family::indexing);
  all({"gather"}, traffic::gather, Family::indexing);
  all({"scatter"}, traffic::scatter<2>, Family::indexing);
  all({"scatter_add", "scatter_reduce"}, traffic::scatter<3>, Family::indexing);
  all({"index_copy"}, traffic::scatter_rows<2>, Family::indexing);
  all({"index_add"}, traffic::scatter_rows<3>, Family::indexing);
  all({"sort"}, traffic::sort, Family::sorting);
  all({"topk"}, traffic::top, Family::sorting);
  all({"max_pool2d_with_indices", "max_pool3d_with_indices"}, traffic::pool<4, true>, Family::pooling);
  all({"avg_pool2d", "avg_pool3d"}, traffic::pool<0, false>, Family::pooling);
  all({"_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "upsample_nearest2d",
       "upsample_nearest1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_linear1d", "upsample_trilinear3d"},
      traffic::resize, Family::pooling);
  all({"max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward", "avg_pool2d_backward",
       "avg_pool3d_backward", "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward",
       "adaptive_max_pool2d_backward"},
      traffic::pool_backward<1>, Family::pooling);
}

void add_lists(Table& table) {
  // Adam: both moments (3 and 4), their corrections, root and quotient, decay and step
  for (const std::string_view name : {"_fused_adam", "_fused_adamw"}) {
    table[name] = {Family::optimizer, traffic::update<14, 5>, true};
  }
  table["_fused_sgd"] = {Family::optimizer, traffic::update<6, 3>, true};
  table["_fused_adagrad"] = {Family::optimizer, traffic::update<6, 3>, true};
  for (const std::string_view name :
       {"_foreach_add", "_foreach_sub", "_foreach_mul", "_foreach_div", "_foreach_lerp", "_foreach_addcmul",
        "_foreach_addcdiv", "_foreach_sqrt", "_foreach_neg", "_foreach_abs", "_foreach_pow", "_foreach_maximum",
        "_foreach_clamp_max", "_foreach_clamp_min", "_foreach_reciprocal", "_foreach_rsqrt", "_foreach_sign",
        "_amp_foreach_non_finite_check_and_unscale"}) {
    table[name] = {Family::optimizer, traffic::each, true};
  }
  table["_foreach_zero"] = {Family::optimizer, traffic::each_norm, true};
  table["_foreach_norm"] = {Family::optimizer, traffic::each_norm, true};
  table["_foreach_copy"] = {Family::optimizer, traffic::each_copy, true};
}

void add_products(Table& table) {
  const auto all = [&](Names names, auto model, Family family = Family::matrices) {
    for (const std::string_view name : names) table[name] = {family, model};
  };
  all({"mm", "bmm"}, traffic::matrices<0, 1, 2>);
  all({"addmm", "baddbmm", "_addmm_activation"}, traffic::matrices<1, 2, 3>);
  table["_grouped_mm"] = {Family::matrices, traffic::matrices<0, 1, 2>, true};
  all({"_scaled_mm", "_scaled_mm_v2", "_scaled_grouped_mm", "_scaled_grouped_mm_v2"}, traffic::matrices_into<4, 2>);
  all({"_int_mm"}, traffic::matrices_into<2, 4>);
  all({"_weight_int8pack_mm", "mkldnn_linear"}, traffic::weight_product<0, 1>);
  all({"mv", "dot", "vdot"}, traffic::vector_product<2>);
  all({"addmv"}, traffic::vector_product<3>);
  all({"ger"}, traffic::outer<0, 1>);
  all({"addr"}, traffic::outer<1, 2>);
  all({"convolution", "_convolution", "convolution_overrideable"}, traffic::convolution, Family::convolution);
  all({"cudnn_convolution"}, traffic::direct_convolution<3, 2, 4>, Family::convolution);
  all({"miopen_convolution", "miopen_depthwise_convolution", "mkldnn_convolution"},
      traffic::direct_convolution<4, 3, 5>, Family::convolution);
  all({"convolution_backward"}, traffic::convolution_backward, Family::convolution);
  all({"_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
       "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_fused_attention_overrideable",
       "_scaled_dot_product_flash_attention_for_cpu", "_flash_attention_forward", "_efficient_attention_forward"},
      traffic::attention, Family::attention);
  all({"_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention_backward",
       "_scaled_dot_product_cudnn_attention_backward", "_scaled_dot_product_fused_attention_overrideable_backward",
       "_scaled_dot_product_flash_attention_for_cpu_backward", "_flash_attention_backward",
       "_efficient_attention_backward"},
      traffic::attention_backward, Family::attention);
  all({"mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "_cudnn_rnn", "_cudnn_rnn_backward"}, traffic::recurrent,
      Family::recurrent);
}

Table made() {
  Table table;
  add_elementwise(table);
  add_over_sizes(table);
  add_places(table);
  add_lists(table);
  add_products(table);
  return table;
}

// A kernel of Inductor's: all that it was given, once. Which of them it writes is not recorded, nor its arithmetic.
Work fused(const Operands& of) { return {std::nullopt, of.bytes_of(0)}; }

constexpr TrafficModel kFused{Family::fused, fused};

}  // namespace

std::string_view to_string(Family family) {
  static constexpr std::array<std::string_view, kFamilies> kNames{
      "matrices",  "convolution", "attention", "recurrent", "normalization", "softmax",
      "reduction", "elementwise", "embedding", "indexing",  "sorting",       "pooling",
      "loss",      "optimizer",   "copy",      "fused",     "custom"};
  return kNames[static_cast<std::size_t>(family)];
}

bool is_in_place(std::string_view op) { return op.starts_with("aten::") && op.ends_with('_'); }

const TrafficModel* traffic_of(std::string_view op) {
  static const Table table = made();
  if (op.starts_with("triton_")) return &kFused;
  constexpr std::string_view kAten = "aten::";
  if (!op.starts_with(kAten)) return nullptr;
  if (is_in_place(op)) op.remove_suffix(1);
  const auto found = table.find(op.substr(kAten.size()));
  return found == table.end() ? nullptr : &found->second;
}

// ---- operands ----

std::optional<std::int64_t> Operands::element(std::size_t at) const {
  if (at < in.shapes.size() && !in.shapes[at].list.empty()) return list_bytes_;
  return at < types_.size() ? element_bytes(types_[at]) : std::nullopt;
}

std::optional<std::int64_t> Operands::elements(std::size_t at) const {
  if (at >= in.shapes.size()) return std::nullopt;
  const Shape& shape = in.shapes[at];
  if (shape.list.empty() && shape.sizes.empty()) {  // a tensor of one element, or no tensor
    return element(at) && in.value(at).empty() ? Count(1) : std::nullopt;
  }
  if (shape.list.empty()) return product(shape.sizes);
  Count sum = 0;
  for (const Sizes& one : shape.list) sum = plus(sum, product(one));
  return sum;
}

std::optional<std::int64_t> Operands::bytes(std::size_t at) const { return times(elements(at), element(at)); }

std::optional<std::int64_t> Operands::bytes_of(std::size_t first, std::size_t last) const {
  Count sum = 0;
  bool any = false;
  for (std::size_t at = first; at < std::min(last, in.shapes.size()); at++) {
    if (!elements(at)) continue;  // a number, a text
    any = true;
    sum = plus(sum, bytes(at));
  }
  return any ? sum : std::nullopt;
}

}  // namespace stepscope::costs
