// Formulas of tables: what they are worth for given sizes, and what is refused with its place.
#include "costs/expression.h"

#include <doctest/doctest.h>

#include <string>

namespace stepscope::costs {
namespace {

std::optional<std::int64_t> value(std::string_view text, std::string_view shapes = "[]", std::string_view values = "[]",
                                  std::optional<std::int64_t> forward = {}) {
  const auto parsed = Expression::parse(text);
  REQUIRE_MESSAGE(parsed, (parsed ? "" : to_text(parsed.error())));
  const auto sizes = parse_shapes(shapes);
  const auto texts = parse_texts(values);
  return parsed->value({sizes, texts}, forward);
}

std::string refused(std::string_view text) {
  const auto parsed = Expression::parse(text);
  REQUIRE_FALSE(parsed);
  return parsed.error().message;
}

TEST_CASE("expression: arithmetic as on paper") {
  CHECK(value("2 + 3 * 4") == 14);
  CHECK(value("(2 + 3) * 4") == 20);
  CHECK(value("20 / 2 / 5") == 2);
  CHECK(value("10 - 2 - 3") == 5);
  CHECK(value("2.5 * 4") == 10);
  CHECK(value("-2 * -3") == 6);
  CHECK(value("1 / 3 * 3") == 1);
  CHECK(value("min(3, 4) + max(3, 4)") == 7);
  CHECK(value("if(2 > 1, 5, 6)") == 5);
  CHECK(value("if(1 == 2, 5, if(1 < 2, 7, 8))") == 7);
}

TEST_CASE("expression: sizes and values of inputs") {
  CHECK(value("2 * prod(d0) * d1[-1]", "[[8,64],[64,32]]") == 2 * 8 * 64 * 32);
  CHECK(value("d0[1]", "[[8,64]]") == 64);
  CHECK(value("rank(d1)", "[[8],[1,2,3]]") == 3);
  CHECK(value("prod(last)", "[[8],[1,2,3],[]]") == 6);
  CHECK(value("m0[0] * m[-1][1]", "[[5,5],[7],[2,3],[],[4,9]]") == 2 * 9);  // the first input is no weight
  CHECK(value("f1[2]", "[[1],[1,2,3,4],[5,6,7,8]]") == 7);
  CHECK(value("c1 + c2", "[[8]]", R"(["", "3", "True"])") == 4);
  CHECK(value("2.5 * forward", "[]", "[]", 10) == 25);
}

TEST_CASE("expression: what was not recorded is unknown, and so is what cannot be") {
  CHECK_FALSE(value("d0[0]"));
  CHECK_FALSE(value("d0[2]", "[[8,64]]"));
  CHECK_FALSE(value("d0[-3]", "[[8,64]]"));
  CHECK_FALSE(value("prod(d1)", "[[8]]"));
  CHECK_FALSE(value("m0[0]", "[[8,8]]"));
  CHECK_FALSE(value("c0", "[[8]]", R"(["[1, 2]"])"));
  CHECK_FALSE(value("forward"));
  CHECK_FALSE(value("unknown"));
  CHECK_FALSE(value("1 / 0"));
  CHECK_FALSE(value("3 - 4"));
  CHECK_FALSE(value("prod(d0)", "[[4611686018427387904,4611686018427387904]]"));
  CHECK(value("if(rank(d0) == 2, 7, unknown)", "[[8,8]]") == 7);
  CHECK_FALSE(value("if(rank(d0) == 2, 7, unknown)", "[[8]]"));
}

TEST_CASE("expression: what is no formula is refused with its place") {
  CHECK(refused("2 * ") ==
        "the formula has its end at character 5 where a number, d0, m0, f0, last, c0, prod(d0), "
        "min, max, if, forward or unknown should be");
  CHECK(refused("2 3").find("'3' at character 3 where an operator or the end") != std::string::npos);
  CHECK(refused("d0").find("a place") != std::string::npos);
  CHECK(refused("prod(2)").find("an input") != std::string::npos);
  CHECK(refused("min(1)").find("a comma") != std::string::npos);
  CHECK(refused("(1").find("a )") != std::string::npos);
  CHECK(refused("system(1)").find("'system(1)' at character 1") != std::string::npos);
  CHECK(refused(std::string(100, '(') + "1" + std::string(100, ')')).find("less nesting") != std::string::npos);
  CHECK(refused(std::string(100, '-') + "1").find("less nesting") != std::string::npos);
  CHECK(refused(std::string(5000, '1')).find("longer") != std::string::npos);
  CHECK(refused("").find("its end") != std::string::npos);
}

}  // namespace
}  // namespace stepscope::costs
