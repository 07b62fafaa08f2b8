// Tables of formulas: rows, which operators they are of, and what those shipped say of real calls.
#include "costs/rules.h"

#include <doctest/doctest.h>

#include <string>

namespace stepscope::costs {
namespace {

const FlopRules& shipped() {
  static const FlopRules table = [] {
    FlopRules made;
    const auto added = made.add(built_in_rules(), "");
    REQUIRE_MESSAGE(added, (added ? "" : to_text(added.error())));
    return made;
  }();
  return table;
}

struct Found {
  std::optional<std::int64_t> flop, backward;
};

Found found(std::string_view op, std::string_view shapes) {
  const FlopRule* rule = shipped().match(op);
  REQUIRE_MESSAGE(rule != nullptr, op);
  const auto sizes = parse_shapes(shapes);
  const std::vector<std::string> none;
  Found out{.flop = rule->flop.value({sizes, none}), .backward = {}};
  if (rule->backward) out.backward = rule->backward->value({sizes, none}, out.flop);
  return out;
}

TEST_CASE("flop rules: every shipped one says why") {
  CHECK(shipped().all().size() >= 15);
  for (const FlopRule& rule : shipped().all()) CHECK_MESSAGE(rule.why.size() > 8, rule.name);
}

TEST_CASE("flop rules: flash attention, forward and backward, is two and five products") {
  // batch 2, 128 queries, 8 heads of 64; 256 keys, 2 heads
  const std::int64_t square = 2LL * 2 * 128 * 8 * 256 * 64;
  CHECK(found("flash_attn::_flash_attn_forward", "[[2,128,8,64],[2,256,2,64],[2,256,2,64]]").flop == 2 * square);
  CHECK(found("flash_attn::_flash_attn_backward", "[[2,128,8,64],[2,128,8,64],[2,256,2,64],[2,256,2,64],[2,128,8,64]]")
            .flop == 5 * square);
  CHECK(found("flash_attn_3::_flash_attn_forward", "[[2,128,8,64],[2,256,2,64],[2,256,2,64]]").flop == 2 * square);
  CHECK_FALSE(found("flash_attn_3::_flash_attn_forward", "[[256,8,64],[512,2,64],[512,2,64]]").flop);
  const Found function = found("FlashAttnFunc", "[[2,128,8,64],[2,256,2,64],[2,256,2,64]]");
  CHECK(function.flop == 2 * square);
  CHECK(function.backward == 5 * square);
  CHECK(found("FlashAttnQKVPackedFunc", "[[2,128,3,8,64]]").flop == 2 * 2LL * 2 * 128 * 8 * 128 * 64);
  CHECK_FALSE(found("flash_attn::_flash_attn_varlen_forward", "[[256,8,64],[512,2,64],[512,2,64]]").flop);
}

TEST_CASE("flop rules: layers of TransformerEngine") {
  const std::int64_t rows = 4LL * 32;
  CHECK(found("_Linear", "[[512,256],[4,32,256],[512]]").flop == 2 * rows * 256 * 512);
  CHECK(found("_Linear", "[[512,256],[4,32,256]]").backward == 4 * rows * 256 * 512);
  CHECK(found("_LayerNormLinear", "[[4,32,256],[256],[256],[768,256],[768]]").flop == 2 * rows * 256 * 768);
  CHECK(found("_LayerNormLinear", "[[4,32,256],[256],[768,256]]").flop == 2 * rows * 256 * 768);  // RMSNorm
  // gated: the first layer is twice as wide
  CHECK(found("_LayerNormMLP", "[[4,32,256],[256],[2048,256],[256,1024]]").flop ==
        2 * rows * (2048LL * 256 + 256 * 1024));
  CHECK(found("_GroupedLinear", "[[128,64],[4],[256,64],[256,64],[256,64],[256,64]]").flop == 2LL * 128 * 64 * 256);
  // sbhd: 128 positions, 2 sequences; the lengths have a place more than there are sequences
  CHECK(found("FusedAttnFunc", "[[3],[3],[128,2,8,64],[128,2,8,64],[128,2,8,64]]").flop ==
        4LL * 128 * 2 * 8 * 64 * 128);
}

TEST_CASE("flop rules: templates of Inductor") {
  CHECK(found("triton_tem_fused_mm_5", "[[128,64],[64,32],[128,32]]").flop == 2LL * 128 * 64 * 32);
  CHECK(found("triton_tem_fused_addmm_relu_0", "[[128,64],[64,32],[32],[128,32]]").flop == 2LL * 128 * 64 * 32);
  CHECK(found("triton_tem_fused_bmm_0", "[[8,128,64],[8,64,32],[8,128,32]]").flop == 2LL * 8 * 128 * 64 * 32);
  CHECK(found("triton_tem_fused_convolution_2", "[[2,8,16,16],[32,8,3,3],[2,32,14,14]]").flop ==
        2LL * 2 * 32 * 14 * 14 * 8 * 9);
  CHECK(found("triton_tem_fused_flex_attention_0", "[[2,8,128,64],[2,8,256,64],[2,8,256,64],[2,8,128]]").flop ==
        2LL * 2 * 8 * 128 * 256 * 128);
  CHECK(shipped().match("triton_poi_fused_add_0") == nullptr);
}

TEST_CASE("flop rules: a user's table, its hints, and what is wrong in it") {
  FlopRules table;
  REQUIRE(
      table.add("# mine\n"
                "norm | ^my::norm$ or ^MyNorm | 5*prod(d0) | 2*forward | type d1; causal c3; unless below; "
                "bytes 2*prod(d0) | own norm\n",
                "mine.txt"));
  const FlopRule* rule = table.match("MyNormFunction");
  REQUIRE(rule != nullptr);
  CHECK(rule->operand == 1);
  CHECK(rule->causal == 3);
  CHECK(rule->unless_below);
  CHECK(rule->bytes.has_value());
  CHECK(table.match("your::norm") == nullptr);

  const auto message = [](std::string_view row) {
    FlopRules bad;
    const auto added = bad.add(std::string("# one\n") + std::string(row), "mine.txt");
    REQUIRE_FALSE(added);
    CHECK(added.error().file == "mine.txt");
    CHECK_FALSE(added.error().hint.empty());
    return added.error().message;
  };
  CHECK(message("a | b | 1 | - | -") == "line 2: expected 6 fields, found 5");
  CHECK(message("a | b | 1 + | - | - | w").starts_with("line 2: the formula has its end at character 4"));
  CHECK(message("a | b | 1 | 2 * | - | w").starts_with("line 2: the formula has its end"));
  CHECK(message("a | b or  or c | 1 | - | - | w") == "line 2: an empty term in the pattern");
  CHECK(message("a | b | 1 | - | fast | w") == "line 2: unknown hint 'fast'");
  CHECK(message("a | b | 1 | - | type 1 | w") == "line 2: unknown hint 'type 1'");
  CHECK(message("a | b | 1 | - | - | w\na | c | 1 | - | - | w") == "line 3: a second rule is named 'a'");
}

TEST_CASE("flop rules: what a range says of its work") {
  const auto said = said_work("my kernel [flop=1200 backward_flop=2400 bytes=96 type=bfloat16]");
  REQUIRE(said);
  CHECK(said->name == "my kernel");
  CHECK(said->flop == 1200);
  CHECK(said->backward_flop == 2400);
  CHECK(said->bytes == 96);
  CHECK(said->type == "bfloat16");
  CHECK(said_work("k [flop=0]"));
  for (const char* none : {"my kernel", "k [flop=]", "k [flop=-1]", "k [flop=1", "k [flop=1.5]", "k [flop=1 and=2]",
                           "k [flop=99999999999999999999]", " [flop=1] x"}) {
    CHECK_MESSAGE(!said_work(none), none);
  }
}

}  // namespace
}  // namespace stepscope::costs
