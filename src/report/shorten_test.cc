#include "report/shorten.h"

#include <doctest/doctest.h>

#include "report/utf8.h"

using namespace stepscope::report;

namespace {
constexpr const char* kElementwise =
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> "
    ">(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)";
}

TEST_CASE("a name that fits stays as it is") {
  CHECK(shorten_name("aten::mm", 8) == "aten::mm");
  CHECK(shorten_name(kElementwise, 400) == kElementwise);
}

TEST_CASE("a kernel name loses what says least first") {
  CHECK(shorten_name(kElementwise, 90) == "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, Array<char*, 3> >");
  CHECK(shorten_name(kElementwise, 60) == "vectorized_elementwise_kernel<4, CUDAFunctor_add, Array >");
  CHECK(shorten_name("void (anonymous namespace)::softmax_warp_forward<float, 8>(float*, float const*)", 40) ==
        "softmax_warp_forward<float, 8>");
}

TEST_CASE("whatever the name, the width holds") {
  for (const std::string& name : {std::string(kElementwise), std::string(10'000, '<'), std::string(10'000, '('),
                                  std::string(10'000, ')'), std::string("漢字漢字漢字漢字漢字"), std::string(500, ':'),
                                  std::string("void "), std::string("f()"), std::string("<>::()->")}) {
    for (const std::size_t width : {0, 1, 2, 3, 5, 9, 30}) {
      const std::string shorter = shorten_name(name, width);
      CHECK(display_width(shorter) <= width);
      CHECK(valid_utf8(shorter) == shorter);
    }
  }
}

TEST_CASE("names of one column stay apart") {
  const std::string start = "void a::kernel<a::Config<128, 64, 32>, a::Layout<float, float>, a::Tile<";
  const auto shown = shorten_names({start + "1>, 7>(int)", start + "2>, 7>(int)", "relu"}, 34);
  CHECK(shown[0] != shown[1]);
  CHECK(shown[0].find("1>") != std::string::npos);
  CHECK(shown[1].find("2>") != std::string::npos);
  CHECK(shown[2] == "relu");
  for (const auto& name : shown) CHECK(display_width(name) <= 34);
  const auto spaces =
      shorten_names({"void f<one::long_name_space::Kernel>(int)", "void f<two::long_name_space::Kernel>(int)"}, 20);
  CHECK(spaces[0] != spaces[1]);  // only the namespace tells them apart
  const std::string same(300, 'x');
  CHECK(shorten_names({same, same}, 10)[0] == shorten_names({same, same}, 10)[1]);  // one name twice may look alike
}
