#include "derive/class_rules.h"

#include <doctest/doctest.h>

#include "base/temp_fixture.h"
#include "derive/derive.h"
#include "model/trace_fixture.h"

namespace stepscope {
namespace {

using derive::RuleTable;

const RuleTable& built_in() {
  static const Result<RuleTable> table = derive::load_rules("");
  REQUIRE(table);
  return *table;
}

const ClassRule& rule_of(std::string_view name, SliceKind kind = SliceKind::kernel, bool collective = false) {
  return built_in().rules()[built_in().match({name, kind, collective})];
}

TEST_CASE("class rules: every built-in rule is whole and has its own reason") {
  const std::vector<ClassRule>& rules = built_in().rules();
  CHECK(rules.size() > 80);
  CHECK(rules[0].device_class == DeviceClass::unclassified);
  for (std::size_t i = 1; i < rules.size(); i++) {
    CHECK(!rules[i].family.empty());
    CHECK(!rules[i].why.empty());
    CHECK_MESSAGE(rules[i].device_class != DeviceClass::unclassified, rules[i].name);
  }
}

TEST_CASE("class rules: real names of many libraries") {
  struct Case {
    std::string_view name, device_class, family;
  };
  const Case cases[] = {
      {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "communication", "all-reduce"},
      {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication", "all-gather"},
      {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevComm*)", "communication", "reduce-scatter"},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "communication", "send/receive"},
      {"ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", "communication", "collective"},
      {"void dpsk::ep::internode::combine<false, 8>(int4*)", "communication", "MoE combine"},
      {"void deep_ep::intranode::dispatch<8, 768>(int4*)", "communication", "MoE dispatch"},
      {"void deep_ep::internode::cached_notify<false>(int)", "communication", "MoE dispatch/combine"},
      {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "communication", "all-reduce"},
      {"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<4>()", "communication",
       "all-reduce"},
      {"nvshmemi_transfer_rma_p2p", "communication", "collective"},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >()", "compute",
       "elementwise"},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, X> >()", "compute", "reduction"},
      {"void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda()>()", "compute", "copy"},
      {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEE", "compute", "fill"},
      {"sm90_xmma_gemm_bf16f32_bf16f32_f32_tn_n_tilesize128x128x64_cublas", "compute", "GEMM"},
      {"nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN", "compute", "GEMM"},
      {"Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32", "compute", "GEMM"},
      {"void cutlass::device_kernel<dpsk::grouped_gemm::cuda::fp8_ptp128c::GemmKernel>()", "compute", "grouped GEMM"},
      {"void grouped_gemm::utils::transpose<__nv_fp8_e4m3>(…)", "compute", "transpose/layout"},
      {"fused_moe_kernel", "compute", "grouped GEMM"},
      {"void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128> >()", "compute", "attention"},
      {"fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)", "compute", "attention"},
      {"void ck_tile::kentry<ck_tile::FmhaFwdKernel<X> >()", "compute", "attention"},
      {"void vllm::rms_norm_kernel<c10::BFloat16>()", "compute", "norm"},
      {"void flashinfer::norm::FusedAddRMSNormKernel<8, __half>()", "compute", "norm"},
      {"triton_poi_fused_add_cos_sin_0", "compute", "elementwise"},
      {"triton_red_fused_native_layer_norm_3", "compute", "norm"},
      {"triton_per_fused_sum_1", "compute", "reduction"},
      {"triton_tem_fused_mm_5", "compute", "GEMM"},
      {"sm80_xmma_dgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc", "compute", "convolution"},
      {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>()", "compute",
       "softmax"},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<X, FusedAdamMathFunctor<float, 4> >()",
       "compute", "optimizer"},
      {"__amd_rocclr_copyBuffer", "memory copy", "memory copy"},
      {"dma_request", "memory copy", "memory copy"},
      {"fc-dtype_Float", "compute", "GEMM"},
  };
  for (const Case& c : cases) {
    const ClassRule& rule = rule_of(c.name);
    CHECK_MESSAGE(to_string(rule.device_class) == c.device_class, c.name, " by ", rule.name);
    CHECK_MESSAGE(rule.family == c.family, c.name, " by ", rule.name);
  }
}

TEST_CASE("class rules: a name that no rule knows stays unclassified") {
  CHECK(rule_of("my_very_own_thing").name == "none");
  CHECK(rule_of("my_very_own_thing", SliceKind::kernel, true).device_class == DeviceClass::communication);
  CHECK(rule_of("anything", SliceKind::memcpy).device_class == DeviceClass::memory_copy);
  CHECK(rule_of("anything", SliceKind::memset).device_class == DeviceClass::memory_set);
}

TEST_CASE("class rules: terms") {
  RuleTable table;
  REQUIRE(
      table.add("# a comment\r\n"
                "starts | compute | A | ^ab | why\r\n"
                "ends   | compute | B | yz$ | why\n"
                "whole  | compute | E | ^exact$ | why\n"
                "both   | compute | C | one and two or three | why\n"
                "not    | compute | D | x1 and not x2 | why\n",
                "f"));
  const auto name_of = [&](std::string_view name) { return table.rules()[table.match({name})].name; };
  CHECK(name_of("abc") == "starts");
  CHECK(name_of("cab") == "none");
  CHECK(name_of("xyz") == "ends");
  CHECK(name_of("exact") == "whole");
  CHECK(name_of("exactly") == "none");
  CHECK(name_of("two one") == "both");
  CHECK(name_of("two") == "none");
  CHECK(name_of("three") == "both");
  CHECK(name_of("x1") == "not");
  CHECK(name_of("x1 x2") == "none");
  CHECK(name_of("") == "none");
}

TEST_CASE("class rules: a bad line is refused with its number") {
  const auto message = [](std::string_view text) {
    RuleTable table;
    const Result<void> added = table.add(text, "my.rules");
    REQUIRE(!added);
    CHECK(added.error().file == "my.rules");
    CHECK(!added.error().hint.empty());
    return added.error().message;
  };
  CHECK(message("# one\n\nx | compute | A | p") == "line 3: expected 5 fields, found 4");
  CHECK(message("x | computing | A | p | w") == "line 1: unknown class 'computing'");
  CHECK(message("x | compute | | p | w") == "line 1: the family is empty");
  CHECK(message("x | compute | A | p or ^ | w") == "line 1: an empty term in the pattern");
  CHECK(message("x | compute | A | @memmove | w") == "line 1: unknown term '@memmove'");
  CHECK(message("x | compute | A | p | w\nx | compute | A | q | w") == "line 2: a second rule is named 'x'");
}

TEST_CASE("class rules: the user's file goes first") {
  const TempFile file("mine | communication | my ring | my_ring or sgemm | our own ring all-reduce\n", "my.rules");
  TraceFixture f;
  const TrackId gpu = f.stream("7");
  f.kernel(gpu, "my_ring_kernel", 0, 10);
  f.kernel(gpu, "volta_sgemm_128x32_nt", 10, 10);
  f.kernel(gpu, "volta_dgemm_128x32_nt", 20, 10);
  f.device(gpu, "cuda_sync", "Stream Wait Event", 30, 5);
  REQUIRE(derive::derive(f.trace, {file.path()}));
  CHECK(f.trace.class_rules[f.trace.device.rule[0]].name == "mine");
  CHECK(f.trace.class_rules[f.trace.device.rule[1]].family == "my ring");
  CHECK(f.trace.class_rules[f.trace.device.rule[2]].family == "GEMM");
  CHECK(f.trace.device.rule[3] == 0);

  TraceFixture empty;
  const Result<void> missing = derive::derive(empty.trace, {"/nowhere/at/all.rules"});
  REQUIRE(!missing);
  CHECK(missing.error().kind == ErrorKind::not_found);
}

}  // namespace
}  // namespace stepscope
