#include "costs/formulas.h"

#include <algorithm>
#include <array>
#include <span>

#include "costs/counts.h"

namespace stepscope::costs {
namespace {

using Flop = Count;

Flop multiply_adds(Flop count) { return times(2, count); }

// Operators are recorded before they look at their inputs. One whose sizes do not fit raised, and computed nothing.
constexpr Flop kRaised = 0;

// a of (…, m, k) with b of (…, k, n): each element of a meets n of b.
template <std::size_t A, std::size_t B>
Flop matrices(const Inputs& in) {
  const Sizes *a = in.tensor(A), *b = in.tensor(B);
  if (a == nullptr || b == nullptr || a->size() < 2) return std::nullopt;
  if (b->size() >= 2 && last(*a) != last(*b, 1)) return kRaised;
  return multiply_adds(times(product(*a), last(*b)));
}

// The same with b of (n, k), as layers keep their weights.
template <std::size_t A, std::size_t B>
Flop matrix_and_weight(const Inputs& in) {
  const Sizes *a = in.tensor(A), *b = in.tensor(B);
  if (a == nullptr || b == nullptr || b->size() != 2) return std::nullopt;
  if (last(*a) != b->back()) return kRaised;
  return multiply_adds(times(product(*a), b->front()));
}

// Each element of the input takes part in one multiply-add.
template <std::size_t A>
Flop one_each(const Inputs& in) {
  const Sizes* a = in.tensor(A);
  return a == nullptr ? std::nullopt : multiply_adds(product(*a));
}

// Every element of a vector with every one of another.
template <std::size_t A, std::size_t B>
Flop outer_product(const Inputs& in) {
  const Sizes *a = in.tensor(A), *b = in.tensor(B);
  return a == nullptr || b == nullptr ? std::nullopt : multiply_adds(times(product(*a), product(*b)));
}

// Groups along the rows of a (2-D with 3-D), the columns of b (3-D with 2-D) or what both share (2-D with 2-D). The
// ends of the groups are not recorded: where they leave rows out, this is more than what ran.
Flop grouped_product(const Inputs& in) {
  const Sizes *a = in.tensor(0), *b = in.tensor(1);
  if (a == nullptr || b == nullptr || a->size() < 2) return std::nullopt;
  const std::size_t groups = a->size() == 3 && b->size() == 2 ? 1 : 0;  // a column of b belongs to one of a
  return multiply_adds(times(product(std::span(*a).subspan(groups)), last(*b)));
}

// ---- convolution ----

Flop weight_per_output(const Sizes& w) { return product(std::span(w).subspan(1)); }

bool is_convolution(const Sizes* x, const Sizes* w) {
  return x != nullptr && w != nullptr && w->size() >= 3 && x->size() == w->size();
}

// Each output element of a channel sees the kernel over the input channels of its group; groups are in the weight.
template <std::size_t Stride, std::size_t Padding, std::size_t Dilation>
Flop direct_convolution(const Inputs& in) {
  const Sizes *x = in.tensor(0), *w = in.tensor(1);
  const auto stride = parse_sizes(in.value(Stride)), padding = parse_sizes(in.value(Padding)),
             dilation = parse_sizes(in.value(Dilation));
  if (!is_convolution(x, w) || !stride || !padding || !dilation) return std::nullopt;
  const Flop positions =
      window_positions(std::span(*x).subspan(2), {std::span(*w).subspan(2), *stride, *padding, *dilation});
  return multiply_adds(times(times(x->front(), positions), product(*w)));
}

std::optional<bool> truth(std::string_view text) {
  const auto truths = parse_truths(text);
  return truths && truths->size() == 1 ? std::optional<bool>(truths->front()) : std::nullopt;
}

Flop convolution(const Inputs& in) {
  const Sizes *x = in.tensor(0), *w = in.tensor(1);
  const std::optional<bool> transposed = truth(in.value(6));
  if (!transposed || !is_convolution(x, w)) return std::nullopt;
  // Each element of the input is spread over the kernel.
  return *transposed ? multiply_adds(times(product(*x), weight_per_output(*w))) : direct_convolution<3, 4, 5>(in);
}

// The gradients of input and weight take as much as forward each; the mask says which ran.
template <std::size_t Transposed, std::size_t Mask>
Flop convolution_backward(const Inputs& in) {
  const Sizes *dy = in.tensor(0), *x = in.tensor(1), *w = in.tensor(2);
  const std::optional<bool> transposed = truth(in.value(Transposed));
  const auto mask = parse_truths(in.value(Mask));
  if (dy == nullptr || !is_convolution(x, w) || !transposed || !mask || mask->size() < 2) return std::nullopt;
  const std::int64_t ran = (*mask)[0] + (*mask)[1];
  return times(ran, multiply_adds(times(product(*transposed ? *x : *dy), weight_per_output(*w))));
}

// ---- attention ----

// Scores q·kᵀ and scores·v. Heads come from q: shared keys and values save no arithmetic.
Flop square(const Sizes* q, const Sizes* k, const Sizes* v) {
  if (q == nullptr || k == nullptr || v == nullptr || q->size() < 2 || k->size() < 2) return std::nullopt;
  const Flop rows = product(std::span(*q).first(q->size() - 1));
  return multiply_adds(times(times(rows, last(*k, 1)), plus(last(*q), last(*v))));
}

Flop attention(const Inputs& in) { return square(in.tensor(0), in.tensor(1), in.tensor(2)); }

// Fused kernels compute the scores once more: five products for two.
Flop five_halves(Flop forward) {
  const Flop five = times(5, forward);
  return five ? Flop(*five / 2) : std::nullopt;
}

Flop attention_backward(const Inputs& in) { return five_halves(square(in.tensor(1), in.tensor(2), in.tensor(3))); }

// Time before heads: (batch, time, heads, size). With sequences of own lengths in one row, what ran is not recorded.
Flop time_first(const Inputs& in, std::size_t q_at, std::size_t lengths_at) {
  const Sizes *q = in.tensor(q_at), *k = in.tensor(q_at + 1), *v = in.tensor(q_at + 2);
  if (q == nullptr || k == nullptr || v == nullptr || q->size() != 4 || k->size() != 4) return std::nullopt;
  if (in.tensor(lengths_at) != nullptr) return std::nullopt;
  const Flop rows = product(std::span(*q).first(3));
  return multiply_adds(times(times(rows, (*k)[1]), plus(last(*q), last(*v))));
}

template <std::size_t Lengths>
Flop attention_time_first(const Inputs& in) {
  return time_first(in, 0, Lengths);
}
template <std::size_t Lengths>
Flop attention_time_first_backward(const Inputs& in) {
  return five_halves(time_first(in, 1, Lengths));
}

// ---- recurrent layers ----

// The gates of one step see its input and the state before.
Flop cells(const Inputs& in) {
  const Sizes *x = in.tensor(0), *input_weight = in.tensor(1), *state_weight = in.tensor(2);
  if (x == nullptr || input_weight == nullptr || state_weight == nullptr) return std::nullopt;
  const Flop rows = product(std::span(*x).first(x->size() - 1));
  return multiply_adds(times(rows, plus(product(*input_weight), product(*state_weight))));
}

// oneDNN computes the gradients of input and first state whether asked or not.
Flop cells_backward(const Inputs& in) { return times(2, cells(in)); }

// All layers and directions in one call; their weights are a list, biases have one size.
Flop layers(const Inputs& in) {
  const Sizes* x = in.tensor(0);
  if (x == nullptr || in.shapes.size() < 2 || in.shapes[1].list.empty()) return std::nullopt;
  Flop weights = 0;
  for (const Sizes& one : in.shapes[1].list) {
    if (one.size() == 2) weights = plus(weights, product(one));
  }
  return multiply_adds(times(product(std::span(*x).first(x->size() - 1)), weights));
}

// The gradient of the data always, that of the weights where the mask wants it.
template <std::size_t Mask>
Flop layers_backward(const Inputs& in) {
  const auto mask = parse_truths(in.value(Mask));
  if (!mask || mask->size() != 4) return std::nullopt;
  return times(1 + (*mask)[3], layers(in));
}

// Sorted by name. Positions are those of the operators' schemas in torch 2.13 (native_functions.yaml).
constexpr std::array kFormulas{
    Formula{"aten::_addmm_activation", matrices<1, 2>, 1},
    Formula{"aten::_convolution", convolution},
    Formula{"aten::_cudnn_rnn", layers},
    Formula{"aten::_cudnn_rnn_backward", layers_backward<21>},
    Formula{"aten::_efficient_attention_backward", attention_time_first_backward<6>, 1, 14},
    Formula{"aten::_efficient_attention_forward", attention_time_first<4>, 0, 9},
    Formula{"aten::_flash_attention_backward", attention_time_first_backward<6>, 1, 11},
    Formula{"aten::_flash_attention_forward", attention_time_first<3>, 0, 8},
    Formula{"aten::_grouped_mm", grouped_product, 0, {}, true},
    Formula{"aten::_int_mm", matrices<0, 1>},
    Formula{"aten::_scaled_dot_product_cudnn_attention", attention, 0, 6},
    Formula{"aten::_scaled_dot_product_cudnn_attention_backward", attention_backward, 1, 14},
    Formula{"aten::_scaled_dot_product_efficient_attention", attention, 0, 6},
    Formula{"aten::_scaled_dot_product_efficient_attention_backward", attention_backward, 1, 11},
    Formula{"aten::_scaled_dot_product_flash_attention", attention, 0, 4},
    Formula{"aten::_scaled_dot_product_flash_attention_backward", attention_backward, 1, 11},
    Formula{"aten::_scaled_dot_product_flash_attention_for_cpu", attention, 0, 4},
    Formula{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward, 1, 7},
    Formula{"aten::_scaled_dot_product_fused_attention_overrideable", attention, 0, 5},
    Formula{"aten::_scaled_dot_product_fused_attention_overrideable_backward", attention_backward, 1, 13},
    Formula{"aten::_scaled_grouped_mm", grouped_product, 0, {}, true},
    Formula{"aten::_scaled_grouped_mm_v2", grouped_product, 0, {}, true},
    Formula{"aten::_scaled_mm", matrices<0, 1>},
    Formula{"aten::_scaled_mm_v2", matrices<0, 1>},
    Formula{"aten::_weight_int8pack_mm", matrix_and_weight<0, 1>},
    Formula{"aten::addmm", matrices<1, 2>, 1},
    Formula{"aten::addmm_", matrices<1, 2>, 1},
    Formula{"aten::addmv", one_each<1>, 1},
    Formula{"aten::addmv_", one_each<1>, 1},
    Formula{"aten::addr", outer_product<1, 2>, 1},
    Formula{"aten::addr_", outer_product<1, 2>, 1},
    Formula{"aten::baddbmm", matrices<1, 2>, 1},
    Formula{"aten::baddbmm_", matrices<1, 2>, 1},
    Formula{"aten::bmm", matrices<0, 1>},
    Formula{"aten::convolution", convolution},
    Formula{"aten::convolution_backward", convolution_backward<7, 10>, 1},
    Formula{"aten::convolution_backward_overrideable", convolution_backward<6, 9>, 1},
    Formula{"aten::convolution_overrideable", convolution},
    Formula{"aten::cudnn_convolution", direct_convolution<3, 2, 4>},
    Formula{"aten::cudnn_convolution_add_relu", direct_convolution<5, 6, 7>},
    Formula{"aten::cudnn_convolution_relu", direct_convolution<3, 4, 5>},
    Formula{"aten::dot", one_each<0>},
    Formula{"aten::ger", outer_product<0, 1>},
    Formula{"aten::miopen_convolution", direct_convolution<4, 3, 5>},
    Formula{"aten::miopen_convolution_add_relu", direct_convolution<5, 6, 7>},
    Formula{"aten::miopen_convolution_relu", direct_convolution<3, 4, 5>},
    Formula{"aten::miopen_depthwise_convolution", direct_convolution<4, 3, 5>},
    Formula{"aten::mkldnn_convolution", direct_convolution<4, 3, 5>},
    Formula{"aten::mkldnn_linear", matrix_and_weight<0, 1>},
    Formula{"aten::mkldnn_rnn_layer", cells},
    Formula{"aten::mkldnn_rnn_layer_backward", cells_backward},
    Formula{"aten::mm", matrices<0, 1>},
    Formula{"aten::mv", one_each<0>},
    Formula{"aten::vdot", one_each<0>},
    Formula{"mkldnn::_convolution_pointwise", direct_convolution<4, 3, 5>},
    Formula{"mkldnn::_linear_pointwise", matrix_and_weight<0, 1>},
};

constexpr bool by_name(const Formula& a, const Formula& b) { return a.op < b.op; }
static_assert(std::is_sorted(kFormulas.begin(), kFormulas.end(), by_name));

}  // namespace

const Formula* formula_of(std::string_view op) {
  const auto* found = std::lower_bound(kFormulas.begin(), kFormulas.end(), Formula{op, nullptr}, by_name);
  return found != kFormulas.end() && found->op == op ? found : nullptr;
}

std::optional<bool> is_causal(const Formula& formula, const Inputs& inputs) {
  if (!formula.causal) return false;
  const std::string_view text = inputs.value(*formula.causal);
  if (text == "0") return false;  // _efficient_attention: no mask; 1 and 2 are causal from either corner
  if (text == "1" || text == "2") return true;
  return truth(text);
}

std::optional<std::int64_t> convolution_by_gradient(const Inputs& forward, const Sizes& gradient) {
  const Sizes *x = forward.tensor(0), *w = forward.tensor(1);
  if (!is_convolution(x, w) || gradient.size() != x->size() || gradient.front() != x->front()) return std::nullopt;
  // Output channels tell a transposed one, but for one as wide as its input. Then they are equal where the sides are.
  const bool transposed = gradient[1] != w->front();
  if (!transposed && (*x)[1] == gradient[1] && gradient[2] > (*x)[2]) return std::nullopt;
  return multiply_adds(times(product(transposed ? *x : gradient), weight_per_output(*w)));
}

}  // namespace stepscope::costs
