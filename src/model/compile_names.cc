#include "model/compile_names.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace stepscope {
namespace {

// Operators whose own names hold an underscore; all others are one word of a kernel's name. Longer names come first
// where one begins with another.
constexpr std::array<std::string_view, 96> kLongNames{"_native_batch_norm_legit_functional",
                                                      "_native_batch_norm_legit_no_training",
                                                      "_native_batch_norm_legit",
                                                      "_scaled_dot_product_flash_attention",
                                                      "_scaled_dot_product_efficient_attention",
                                                      "_log_softmax_backward_data",
                                                      "_log_softmax",
                                                      "_softmax_backward_data",
                                                      "_softmax",
                                                      "_to_copy",
                                                      "_unsafe_index_put",
                                                      "_unsafe_index",
                                                      "_unsafe_view",
                                                      "_adaptive_avg_pool2d_backward",
                                                      "_adaptive_avg_pool2d",
                                                      "_fused_rms_norm_backward",
                                                      "_fused_rms_norm",
                                                      "_assert_async",
                                                      "_foreach_add",
                                                      "_foreach_mul",
                                                      "native_layer_norm_backward",
                                                      "native_layer_norm",
                                                      "native_group_norm_backward",
                                                      "native_group_norm",
                                                      "native_batch_norm_backward",
                                                      "native_batch_norm",
                                                      "native_dropout_backward",
                                                      "native_dropout",
                                                      "convolution_backward",
                                                      "embedding_dense_backward",
                                                      "embedding_bag",
                                                      "layer_norm",
                                                      "rms_norm",
                                                      "group_norm",
                                                      "batch_norm",
                                                      "log_softmax",
                                                      "nll_loss_forward",
                                                      "nll_loss_backward",
                                                      "nll_loss",
                                                      "cross_entropy",
                                                      "mse_loss_backward",
                                                      "mse_loss",
                                                      "huber_loss",
                                                      "binary_cross_entropy",
                                                      "gelu_backward",
                                                      "silu_backward",
                                                      "sigmoid_backward",
                                                      "tanh_backward",
                                                      "threshold_backward",
                                                      "hardtanh_backward",
                                                      "leaky_relu_backward",
                                                      "leaky_relu",
                                                      "elu_backward",
                                                      "max_pool2d_with_indices_backward",
                                                      "max_pool2d_with_indices",
                                                      "avg_pool2d_backward",
                                                      "avg_pool2d",
                                                      "upsample_nearest2d",
                                                      "upsample_bilinear2d",
                                                      "constant_pad_nd",
                                                      "reflection_pad2d",
                                                      "index_select",
                                                      "index_add",
                                                      "index_put",
                                                      "slice_backward",
                                                      "slice_scatter",
                                                      "select_backward",
                                                      "select_scatter",
                                                      "scatter_add",
                                                      "scatter_reduce",
                                                      "masked_fill",
                                                      "masked_scatter",
                                                      "split_with_sizes",
                                                      "scalar_tensor",
                                                      "new_zeros",
                                                      "new_ones",
                                                      "new_empty",
                                                      "new_full",
                                                      "zeros_like",
                                                      "ones_like",
                                                      "empty_like",
                                                      "full_like",
                                                      "rand_like",
                                                      "randn_like",
                                                      "logical_and",
                                                      "logical_or",
                                                      "logical_not",
                                                      "bitwise_and",
                                                      "bitwise_or",
                                                      "bitwise_not",
                                                      "bitwise_xor",
                                                      "var_mean",
                                                      "repeat_interleave",
                                                      "linalg_vector_norm",
                                                      "scaled_dot_product_attention",
                                                      "prepare_softmax_online"};

struct KindName {
  std::string_view prefix, kind;
};
constexpr std::array<KindName, 9> kKinds{{{"triton_poi_fused_", "pointwise"},
                                          {"triton_red_fused_", "reduction"},
                                          {"triton_per_fused_", "persistent reduction"},
                                          {"triton_tem_fused_", "template"},
                                          {"triton_for_fused_", "combined"},
                                          {"triton_spl_fused_", "split scan"},
                                          {"triton_mix_fused_", "mixed"},
                                          {"triton_fused_", "fused"},
                                          {"cpp_fused_", "C++ loop"}}};

// How long the operator name at the beginning of `words` is.
std::size_t name_length(std::string_view words) {
  const auto whole = [&](std::string_view name) {
    return words.starts_with(name) && (words.size() == name.size() || words[name.size()] == '_');
  };
  const auto found = std::find_if(kLongNames.begin(), kLongNames.end(), whole);
  if (found != kLongNames.end()) return found->size();
  return std::min(words.find('_', words.starts_with('_') ? 1 : 0), words.size());
}

}  // namespace

bool is_frame_compile(std::string_view name) {
  return name == "entire_frame_compile" || name == "entire_frame_compile (dynamo_timed)" ||
         name == "_compile.compile_inner (dynamo_timed)" || name == "_compile.<locals>.compile_inner (dynamo_timed)";
}

std::string_view compile_stage(std::string_view name) {
  constexpr std::string_view kEnd = " (dynamo_timed)";
  return name.ends_with(kEnd) ? name.substr(0, name.size() - kEnd.size()) : std::string_view();
}

std::string_view compiled_region(std::string_view name) {
  constexpr std::string_view kBegin = "Torch-Compiled Region";
  if (!name.starts_with(kBegin)) return {};
  return name.substr(std::min(name.size(), kBegin.size() + (name.substr(kBegin.size()).starts_with(": ") ? 2 : 0)));
}

std::string_view compiled_graph(std::string_view name) {
  constexpr std::string_view kBegin = "## Call CompiledFxGraph ", kEnd = " ##";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() < kBegin.size() + kEnd.size()) return {};
  return name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
}

bool is_backward_compile(std::string_view name) { return name == "entire_backward_compile"; }

namespace {

std::optional<CompileId> compile_id(std::string_view name, std::string_view begin_of_name) {
  constexpr std::string_view kKey = "compile_id=";
  const std::size_t at = name.find(kKey);
  if (!name.starts_with(begin_of_name) || at == std::string_view::npos) return std::nullopt;
  std::string_view text = name.substr(at + kKey.size());
  text = text.substr(0, text.find_first_of(", "));
  const std::size_t slash = text.rfind('/');  // of compiled autograd the last two of "!0/1/2" count
  if (slash == std::string_view::npos || slash == 0) return std::nullopt;
  const std::size_t begin = text.find_last_not_of("0123456789", slash - 1);
  CompileId id;
  const char* first = text.data() + (begin == std::string_view::npos ? 0 : begin + 1);
  const auto frame = std::from_chars(first, text.data() + slash, id.frame);
  const auto attempt = std::from_chars(text.data() + slash + 1, text.data() + text.size(), id.attempt);
  if (frame.ec != std::errc() || attempt.ec != std::errc()) return std::nullopt;
  return id;
}

}  // namespace

std::optional<CompileId> frame_compile_id(std::string_view name) {
  return compile_id(name, "entire_frame_compile_data:");
}

std::optional<CompileId> backward_compile_id(std::string_view name) {
  return compile_id(name, "entire_backward_compile_data:");
}

std::optional<FusedKernel> fused_kernel(std::string_view name) {
  const auto kind =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const KindName& k) { return name.starts_with(k.prefix); });
  if (kind == kKinds.end()) return std::nullopt;
  std::string_view words = name.substr(kind->prefix.size());
  const std::size_t last = words.rfind('_');  // the kernel's number
  const bool numbered = last != std::string_view::npos && last + 1 < words.size() &&
                        words.find_first_not_of("0123456789", last + 1) == std::string_view::npos;
  if (numbered) words = words.substr(0, last);
  FusedKernel fused{.kind = kind->kind};
  while (!words.empty()) {
    const std::size_t length = std::max<std::size_t>(1, name_length(words));
    if (!fused.ops.empty()) fused.ops += ", ";
    fused.ops += words.substr(0, length);
    words.remove_prefix(std::min(words.size(), length + 1));
  }
  return fused;
}

}  // namespace stepscope
