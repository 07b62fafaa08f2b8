// Which kernels use tensor cores, told by names as real traces have them.
#include "model/kernel_groups.h"

#include <doctest/doctest.h>

using namespace stepscope;

TEST_CASE("kernels that use tensor cores are known by their names") {
  CHECK(uses_tensor_cores("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_nn"));
  CHECK(uses_tensor_cores("void cutlass::device_kernel<dpsk::grouped_gemm::cuda::fp8_ptp128c::GemmKernel>(…)"));
  CHECK(
      uses_tensor_cores("void flash::compute_attn_ws<Flash_fwd_kernel_traits<192>>(flash::CollectiveMainloopFwd<…>)"));
  CHECK(uses_tensor_cores("cutlass::device_kernel<flash::FlashAttnBwd<flash::CollectiveMainloopBwd<2, 64>>>"));
  CHECK_FALSE(uses_tensor_cores("cutlass::device_kernel<flash::FlashAttnBwdPreprocess<cute::C<64>>>"));
  CHECK_FALSE(uses_tensor_cores("void cuda::per_token_cast_to_fp8_with_channels<__nv_bfloat16, 128>(…)"));
  CHECK_FALSE(uses_tensor_cores("void dpsk::grouped_gemm::cuda::utils::transpose<512, 128, 4, 4>(…)"));
  CHECK_FALSE(uses_tensor_cores("ampere_sgemm_128x64_nn"));
}
