// Sizes, types and values as the profiler writes them.
#include "model/input_text.h"

#include <doctest/doctest.h>

#include "model/collective_work.h"

namespace stepscope {
namespace {

TEST_CASE("input text: sizes, lists of sizes, texts and truths from what the profiler writes") {
  const auto shapes = parse_shapes("[[8, 64], [], [[4], [4, 2]]]");
  REQUIRE(shapes.size() == 3);
  CHECK(shapes[0].sizes == Sizes{8, 64});
  CHECK(shapes[1].sizes.empty());
  CHECK(shapes[2].list == std::vector<Sizes>{{4}, {4, 2}});
  // what is gathered: a list of lists of tensors
  CHECK(parse_shapes("[[[[4], [4]], [[2]]]]")[0].list == std::vector<Sizes>{{4}, {4}, {2}});
  CHECK(parse_texts(R"(["", "[1, 1]", "True"])") == std::vector<std::string>{"", "[1, 1]", "True"});
  CHECK(parse_sizes("[2, 3]") == Sizes{2, 3});
  CHECK(parse_truths("[True, False]") == std::vector<bool>{true, false});
  CHECK(parse_truths("True") == std::vector<bool>{true});
  for (const char* bad :
       {"", "[", "[[1,2]", "[[1,2]] x", "[[1,]]", "[[99999999999999999999]]", "[[[[[[[1]]]]]]]", "null"}) {
    CAPTURE(bad);
    CHECK(parse_shapes(bad).empty());
  }
  for (const char* bad : {"", "[\"a]", "[1]", "text"}) CHECK(parse_texts(bad).empty());
  CHECK_FALSE(parse_sizes("4"));
  CHECK_FALSE(parse_truths("[Tru]"));
}

TEST_CASE("input text: bytes of the largest tensor") {
  CHECK(largest_input_bytes("[[8, 64], [4]]", R"x(["float", "long int"])x") == 8 * 64 * 4);
  CHECK(largest_input_bytes("[[[[4], [4]]], [[4]]]",
                            R"x(["GenericList[Tensor(float)]", "GenericList[Tensor(float)]"])x") == 32);
  CHECK(largest_input_bytes("[[], [4]]", R"x(["Int", "Tensor(c10::BFloat16)"])x") == 8);
  CHECK_FALSE(largest_input_bytes("[[]]", R"x(["Int"])x"));
  CHECK_FALSE(largest_input_bytes("[[4611686018427387904, 64]]", R"x(["float"])x"));
  CHECK_FALSE(largest_input_bytes("[[-4]]", R"x(["float"])x"));
  CHECK_FALSE(largest_input_bytes("[[4]]", R"x(["no such type"])x"));
}

}  // namespace
}  // namespace stepscope
