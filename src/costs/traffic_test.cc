// Models of what operators move, for those that a CPU does not run: real tensors are in tests/python/test_roofline.py.
#include "costs/traffic.h"

#include <doctest/doctest.h>

#include "costs/formulas.h"

namespace stepscope::costs {
namespace {

Work work(std::string_view op, std::string_view shapes, std::vector<std::string_view> types,
          std::string_view values = "[]", std::optional<std::int64_t> list_bytes = {}) {
  const TrafficModel* model = traffic_of(op);
  REQUIRE_MESSAGE(model != nullptr, op);
  const auto sizes = parse_shapes(shapes);
  const auto texts = parse_texts(values);
  return model->work(Operands({sizes, texts}, std::move(types), list_bytes, is_in_place(op)));
}

TEST_CASE("traffic: optimizers read all lists and write all but the gradients") {
  const std::string_view lists = "[[[8,8],[8]],[[8,8],[8]],[[8,8],[8]],[[8,8],[8]],[],[[],[]]]";
  const Work adam = work("aten::_fused_adamw_", lists, {}, "[]", 4);
  CHECK(adam.bytes == 72 * 4 * (4 + 3));
  CHECK(adam.flop == 72 * 14);
  CHECK_FALSE(work("aten::_fused_adamw_", lists, {}).bytes);  // element types of lists are not recorded
  CHECK(work("aten::_fused_sgd_", "[[[8,8]],[[8,8]],[[8,8]]]", {}, "[]", 2).bytes == 64 * 2 * (3 + 2));
  CHECK(work("aten::_foreach_add_", "[[[8,8]],[[8,8]],[]]", {}, "[]", 4).bytes == 3 * 64 * 4);
  CHECK(traffic_of("aten::_foreach_add_")->unless_below);
}

TEST_CASE("traffic: products of small elements give larger ones") {
  const Work scaled = work("aten::_scaled_mm", "[[64,96],[96,32],[],[]]",
                           {"float8_e4m3fn", "float8_e4m3fn", "float32", "float32"}, R"(["", "", "", ""])");
  CHECK(scaled.bytes == 64 * 96 + 96 * 32 + 4 + 4 + 64 * 32 * 2);
  CHECK_FALSE(scaled.flop);  // has a formula
}

TEST_CASE("traffic: attention on a device keeps its scores to itself") {
  const std::vector<std::string_view> types(7, "bfloat16");
  CHECK(work("aten::_scaled_dot_product_flash_attention", "[[2,8,64,32],[2,8,96,32],[2,8,96,32],[],[]]", types,
             R"(["", "", "", "0.", "False"])")
            .bytes == 2 * 8 * 32 * 2 * (64 + 96 + 96 + 64));
}

TEST_CASE("traffic: a kernel of a compiler moves what it was given once, and its arithmetic is not known") {
  const Work fused = work("triton_poi_fused_add_0", "[[64,64],[64],[64,64],[]]", {"float32", "float32", "float32"},
                          R"(["", "", "", "4096"])");
  CHECK(fused.bytes == (64 * 64 + 64 + 64 * 64) * 4);
  CHECK_FALSE(fused.flop);
}

TEST_CASE("traffic: what was not recorded is unknown") {
  CHECK_FALSE(work("aten::add", "[]", {}).bytes);
  CHECK_FALSE(work("aten::add", "[[8],[8]]", {"float32", "my own type"}).bytes);
  CHECK_FALSE(work("aten::convolution", "[[2,8,16,16],[4,8,3,3]]", {"float32", "float32"}).bytes);
  CHECK_FALSE(work("aten::embedding_dense_backward", "[[8,8],[8]]", {"float32", "int64"}).bytes);
  CHECK_FALSE(work("aten::topk", "[[8,0]]", {"float32"}, R"(["", "2"])").bytes);
  CHECK_FALSE(work("aten::add", "[[4611686018427387904,4],[4]]", {"float32", "float32"}).bytes);
  CHECK_FALSE(work("aten::index_select", "[[8,8],[],[4]]", {"float32", "", "int64"}, R"(["", "7", ""])").bytes);
  CHECK_FALSE(work("aten::max_pool2d_with_indices", "[[2,8,4,4],[],[],[],[]]", {"float32"},
                   R"(["", "[9, 9]", "[]", "[0]", "[1]"])")
                  .bytes);
}

TEST_CASE("traffic: what is made of others has no model") {
  for (const char* op : {"aten::linear", "aten::layer_norm", "aten::dropout", "aten::to", "aten::matmul", "aten::view",
                         "aten::empty", "aten::softmax", "aten::cross_entropy_loss", "my::op", ""}) {
    CHECK_MESSAGE(traffic_of(op) == nullptr, op);
  }
}

}  // namespace
}  // namespace stepscope::costs
