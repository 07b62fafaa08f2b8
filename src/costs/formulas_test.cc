// The formulas, each on sizes for which the figure can be worked out on paper.
#include "costs/formulas.h"

#include <doctest/doctest.h>

namespace stepscope::costs {
namespace {

using Flop = std::optional<std::int64_t>;

Flop flop(std::string_view op, std::string_view shapes, std::string_view values = "[]") {
  const Formula* formula = formula_of(op);
  REQUIRE_MESSAGE(formula != nullptr, op);
  const auto parsed = parse_shapes(shapes);
  const auto texts = parse_texts(values);
  return formula->flop({parsed, texts});
}

std::optional<bool> causal(std::string_view op, std::string_view values) {
  const std::vector<Shape> none;
  const auto texts = parse_texts(values);
  return is_causal(*formula_of(op), {none, texts});
}

TEST_CASE("flops: products of matrices and vectors") {
  CHECK(flop("aten::mm", "[[2,3],[3,4]]") == 48);
  CHECK(flop("aten::mm", "[[2,3],[3,4],[2,4]]") == 48);  // into a given output
  CHECK(flop("aten::addmm", "[[4],[2,3],[3,4],[],[]]") == 48);
  CHECK(flop("aten::bmm", "[[5,2,3],[5,3,4]]") == 240);
  CHECK(flop("aten::baddbmm", "[[5,2,4],[5,2,3],[5,3,4],[],[]]") == 240);
  CHECK(flop("aten::mv", "[[2,3],[3]]") == 12);
  CHECK(flop("aten::addmv_", "[[2],[2,3],[3],[],[]]") == 12);
  CHECK(flop("aten::dot", "[[7],[7]]") == 14);
  CHECK(flop("aten::ger", "[[2],[3]]") == 12);
  CHECK(flop("aten::mkldnn_linear", "[[5,2,3],[4,3],[4]]") == 240);
  CHECK(flop("aten::mm", "[[0,3],[3,4]]") == 0);
}

TEST_CASE("flops: groups of rows, of columns and of what both share") {
  CHECK(flop("aten::_grouped_mm", "[[128,64],[4,64,32],[4]]") == 2 * 128 * 64 * 32);
  CHECK(flop("aten::_grouped_mm", "[[4,16,64],[64,128],[4]]") == 2 * 16 * 64 * 128);
  CHECK(flop("aten::_grouped_mm", "[[64,128],[128,32],[4]]") == 2 * 64 * 128 * 32);
}

TEST_CASE("flops: convolutions with groups, strides, dilation, and spread ones") {
  constexpr std::string_view plain = R"(["","","","[1, 1]","[1, 1]","[1, 1]","False","[0, 0]","8"])";
  CHECK(flop("aten::convolution", "[[8,64,16,16],[128,8,3,3],[128]]", plain) == 2 * 8 * 16 * 16 * 128 * 8 * 9);
  constexpr std::string_view wide = R"(["","","","[2]","[1]","[2]","False","[0]","1"])";
  CHECK(flop("aten::convolution", "[[2,3,20],[4,3,3],[]]", wide) == 2 * 2 * 9 * 4 * 3 * 3);
  constexpr std::string_view spread = R"(["","","","[2, 2]","[1, 1]","[1, 1]","True","[0, 0]","1"])";
  CHECK(flop("aten::convolution", "[[8,32,8,8],[32,16,4,4],[16]]", spread) == 2 * 8 * 32 * 64 * 16 * 16);
  constexpr std::string_view other_order = R"(["","","","[1, 1]","[2, 2]","[1, 1]","1"])";
  CHECK(flop("aten::mkldnn_convolution", "[[1,1,8,8],[1,1,3,3],[]]", other_order) == 2 * 4 * 4 * 9);
  CHECK(flop("aten::convolution", "[[8,64,16,16],[128,8,3,3],[128]]") == std::nullopt);  // values not recorded
  constexpr std::string_view too_large = R"(["","","","[1, 1]","[0, 0]","[9, 9]","False","[0, 0]","1"])";
  CHECK(flop("aten::convolution", "[[1,1,8,8],[1,1,3,3],[]]", too_large) == std::nullopt);
}

TEST_CASE("flops: the mask says which gradients of a convolution ran") {
  const auto backward = [](const char* transposed, const char* mask) {
    const std::string values = std::string(R"(["","","","[128]","[1, 1]","[1, 1]","[1, 1]",")") + transposed +
                               R"(","[0, 0]","1",")" + mask + "\"]";
    return flop("aten::convolution_backward", "[[8,16,14,14],[8,4,16,16],[16,4,3,3]]", values);
  };
  constexpr std::int64_t one = 2 * 8 * 16 * 14 * 14 * 4 * 9;
  CHECK(backward("False", "[True, True, True]") == 2 * one);
  CHECK(backward("False", "[False, True, True]") == one);
  CHECK(backward("False", "[False, False, True]") == 0);
  CHECK(backward("True", "[False, True, False]") == 2 * 8 * 4 * 16 * 16 * 4 * 9);
  CHECK(backward("False", "") == std::nullopt);
}

TEST_CASE("flops: a convolution without its arguments, from the gradient of its output") {
  const auto by_gradient = [](const char* shapes, const Sizes& gradient) {
    const auto parsed = parse_shapes(shapes);
    const std::vector<std::string> none;
    return convolution_by_gradient({parsed, none}, gradient);
  };
  CHECK(by_gradient("[[8,4,16,16],[16,4,3,3]]", {8, 16, 14, 14}) == 2 * 8 * 16 * 14 * 14 * 4 * 9);
  CHECK(by_gradient("[[8,32,8,8],[32,16,4,4]]", {8, 16, 16, 16}) == 2 * 8 * 32 * 8 * 8 * 16 * 16);  // spread
  CHECK(by_gradient("[[8,4,8,8],[4,4,2,2]]", {8, 4, 9, 9}) == std::nullopt);                        // either
  CHECK(by_gradient("[[8,4,8,8],[4,4,2,2]]", {3, 4, 7, 7}) == std::nullopt);                        // of another one
}

TEST_CASE("flops: attention of every kind, its backward, and where it says that its mask is causal") {
  constexpr std::int64_t forward = 2 * 2 * 8 * 64 * 64 * (32 + 32);
  for (const char* kind : {"flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention",
                           "fused_attention_overrideable"}) {
    CAPTURE(kind);
    const std::string op = std::string("aten::_scaled_dot_product_") + kind;
    CHECK(flop(op, "[[2,8,64,32],[2,2,64,32],[2,2,64,32]]") == forward);  // two heads of keys for eight
    CHECK(flop(op + "_backward", "[[2,8,64,32],[2,8,64,32],[2,2,64,32],[2,2,64,32]]") == forward / 2 * 5);
  }
  CHECK(flop("aten::_flash_attention_forward", "[[2,64,8,32],[2,64,2,32],[2,64,2,32],[],[]]") == forward);
  CHECK(flop("aten::_flash_attention_forward", "[[128,8,32],[128,2,32],[128,2,32],[3],[3]]") == std::nullopt);
  CHECK(causal("aten::_scaled_dot_product_flash_attention_for_cpu", R"(["","","","0.","True"])") == true);
  CHECK(causal("aten::_scaled_dot_product_flash_attention", R"(["","","","0.","False"])") == false);
  CHECK(causal("aten::_efficient_attention_forward", R"(["","","","","","","","","","1"])") == true);
  CHECK(causal("aten::_efficient_attention_forward", R"(["","","","","","","","","","0"])") == false);
  CHECK(causal("aten::_scaled_dot_product_flash_attention", "[]") == std::nullopt);
  CHECK(causal("aten::mm", "[]") == false);
}

TEST_CASE("flops: recurrent layers, one at a time or all in one call") {
  CHECK(flop("aten::mkldnn_rnn_layer", "[[16,4,32],[256,32],[256,64]]") == 2 * 64 * 256 * (32 + 64));
  CHECK(flop("aten::mkldnn_rnn_layer_backward", "[[16,4,32],[256,32],[256,64]]") == 4 * 64 * 256 * (32 + 64));
  CHECK(flop("aten::_cudnn_rnn", "[[16,4,32],[[256,32],[256,64],[256],[256]],[],[]]") == 2 * 64 * 256 * (32 + 64));
}

TEST_CASE("flops: what is made of others has no formula, and sizes that make no sense give no figure") {
  for (const char* op : {"aten::linear", "aten::matmul", "aten::einsum", "aten::conv2d", "aten::lstm",
                         "aten::scaled_dot_product_attention", "aten::add", "mm", ""}) {
    CAPTURE(op);
    CHECK(formula_of(op) == nullptr);
  }
  CHECK(flop("aten::mm", "[]") == std::nullopt);
  CHECK(flop("aten::mm", "[[2,3]]") == std::nullopt);
  CHECK(flop("aten::mm", "[[2,3],[]]") == std::nullopt);
  CHECK(flop("aten::mm", "[[-2,3],[3,4]]") == std::nullopt);
  CHECK(flop("aten::mm", "[[4294967296,4294967296],[4294967296,4294967296]]") == std::nullopt);
  CHECK(flop("aten::addmm", "[[4],[2,3]]") == std::nullopt);
  CHECK(flop("aten::_scaled_dot_product_flash_attention", "[[2],[2],[2]]") == std::nullopt);
}

}  // namespace
}  // namespace stepscope::costs
