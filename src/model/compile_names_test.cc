#include "model/compile_names.h"

#include <doctest/doctest.h>

namespace stepscope {
namespace {

TEST_CASE("compile names: as torch 2.13 wrote them") {
  CHECK(is_frame_compile("entire_frame_compile"));
  CHECK(is_frame_compile("_compile.compile_inner (dynamo_timed)"));
  CHECK_FALSE(is_frame_compile("entire_frame_compile_data: fn_name=_compile.compile_inner, compile_id=0/0"));
  CHECK(compile_stage("GraphLowering.run (dynamo_timed)") == "GraphLowering.run");
  CHECK(compile_stage("GraphLowering.run") == "");
  CHECK(compiled_region("Torch-Compiled Region: 0/1") == "0/1");
  CHECK(compiled_region("Torch-Compiled Region") == "");
  CHECK(compiled_graph("## Call CompiledFxGraph febff4t ##") == "febff4t");
  CHECK(compiled_graph("## Call CompiledFxGraph ##") == "");
  const auto id = frame_compile_id("entire_frame_compile_data: fn_name=_compile.compile_inner, compile_id=3/12");
  REQUIRE(id);
  CHECK(id->frame == 3);
  CHECK(id->attempt == 12);
  CHECK(frame_compile_id("entire_frame_compile_data: compile_id=!0/4/2, x")->frame == 4);
  CHECK_FALSE(frame_compile_id("entire_frame_compile_data: compile_id=None"));
  CHECK_FALSE(frame_compile_id("entire_frame_compile_data: compile_id=/"));
  CHECK_FALSE(frame_compile_id("GraphLowering.run_data: compile_id=0/0"));
  CHECK(is_backward_compile("entire_backward_compile"));
  const std::string_view backward = "entire_backward_compile_data: fn_name=backward._backward_impl, compile_id=0/2";
  CHECK(backward_compile_id(backward)->attempt == 2);
  CHECK_FALSE(frame_compile_id(backward));
}

TEST_CASE("compile names: a fused kernel tells its operators") {
  const auto check = [](std::string_view name, std::string_view kind, std::string_view ops) {
    CAPTURE(name);
    const auto fused = fused_kernel(name);
    REQUIRE(fused);
    CHECK(fused->kind == kind);
    CHECK(fused->ops == ops);
  };
  check("triton_poi_fused_add_cos_sin_0", "pointwise", "add, cos, sin");
  check("triton_per_fused__to_copy_add_native_layer_norm_native_layer_norm_backward_12", "persistent reduction",
        "_to_copy, add, native_layer_norm, native_layer_norm_backward");
  check("triton_red_fused__softmax_div_masked_fill_3", "reduction", "_softmax, div, masked_fill");
  check("triton_poi_fused_0", "pointwise", "0");  // a number alone is all it has
  check("cpp_fused_relu_threshold_backward_1", "C++ loop", "relu, threshold_backward");
  check("triton_poi_fused__unknown_thing_7", "pointwise", "_unknown, thing");
  check("triton_poi_fused_", "pointwise", "");
  CHECK_FALSE(fused_kernel("triton_tem_mm"));
  CHECK_FALSE(fused_kernel("ampere_sgemm_128x64_tn"));
}

}  // namespace
}  // namespace stepscope
