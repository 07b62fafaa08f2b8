// Causes about work on a device, on traces made by hand: what is found, where, what it is worth, and what is no cause.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "diagnose/device_fixture.h"

namespace stepscope::diagnose {
namespace device_causes {
namespace {

TEST_CASE("advice: one operator in place of a chain that a host launches takes as long to launch as one of them") {
  const Answer answer = advice_on([](Job& job) {
    for (int i = 0; i < 8; i++) job.launch("aten::mul", 40 * us, "mul_kernel", 5 * us, {.dims = "[[1048576], []]"});
    job.compute("aten::sort", 80 * us);
  });
  const Finding* found = find(answer, "elementwise_chain");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_low > 2.9);  // 400 us to 40 + 80, or less where the rest is relieved
  CHECK(found->gain->speedup_low < 3.6);
}

TEST_CASE("advice: work that is shorter than its launch leaves the device waiting, longer work does not") {
  const auto step_of = [](std::int64_t device_ns) {
    return [device_ns](Job& job) {
      for (int i = 0; i < 50; i++) job.launch("aten::mul", 20 * us, kElementwise, device_ns);
    };
  };
  const Answer answer = advice_on(step_of(3 * us));
  REQUIRE(!answer.findings.empty());
  const Finding& first = answer.findings[0];
  CHECK(first.id == "small_launches");
  CHECK(evidence(first, "Launches per step") == 50);
  CHECK(evidence(first, "Median of their work on the device") == 3 * us);
  REQUIRE(first.gain);
  CHECK(first.gain->speedup_low == doctest::Approx(1 / 0.6).epsilon(0.05));
  CHECK(find(advice_on(step_of(40 * us)), "small_launches") == nullptr);
}

TEST_CASE("advice: an optimizer of many operators comes before what launches them like anything else") {
  const auto advice_with = [](int parameters) {
    const Answer answer = advice_on([&](Job& job) {
      for (int i = 0; i < 60; i++) job.launch("aten::mm", 30 * us, "gemm", 4 * us);
      job.optimizer([&] {
        for (int i = 0; i < parameters; i++) {
          for (const std::string_view name : {"aten::mul_", "aten::lerp_", "aten::addcmul_", "aten::sqrt", "aten::div"})
            job.launch(name, 30 * us, kElementwise, 4 * us);
        }
      });
    });
    REQUIRE(find(answer, "small_launches") != nullptr);
    REQUIRE(find(answer, "unfused_optimizer") != nullptr);
    return answer;
  };
  const Answer much = advice_with(20), little = advice_with(3);
  CHECK(much.findings[0].id == "unfused_optimizer");
  CHECK(much.findings[1].id == "small_launches");
  CHECK(much.findings[1].gain->speedup_high > much.findings[0].gain->speedup_high);
  CHECK(little.findings[0].id == "small_launches");
}

TEST_CASE("advice: an operator on the host in a job whose work is on a device") {
  const auto step_of = [](bool device) {
    return [device](Job& job) {
      if (device) job.launch("aten::mul", 20 * us, kElementwise, 1 * ms);
      job.compute("aten::sort", 5 * ms);
    };
  };
  const Answer answer = advice_on(step_of(true));
  REQUIRE(!answer.findings.empty());
  CHECK(answer.findings[0].id == "op_on_cpu");
  CHECK(answer.findings[0].where.op == "aten::sort");
  REQUIRE(answer.findings[0].gain);
  CHECK(answer.findings[0].gain->speedup_low > 3);
  CHECK(find(advice_on(step_of(false)), "op_on_cpu") == nullptr);
}

TEST_CASE("advice: memory taken from the device in the steps") {
  const Answer answer = advice_on([](Job& job) {
    job.launch("aten::mul", 20 * us, kElementwise, 1 * ms);
    job.call("aten::empty", "cudaMalloc", 4 * ms);
  });
  REQUIRE(!answer.findings.empty());
  CHECK(answer.findings[0].id == "device_allocation");
  CHECK(answer.findings[0].where.op == "aten::empty");
  REQUIRE(answer.findings[0].gain);
  CHECK(answer.findings[0].gain->speedup_low > 2);
  CHECK(find(answer, "op_on_cpu") == nullptr);
}

TEST_CASE("advice: torch's allocator that gives memory back inside of an operator has run short") {
  const Answer answer = advice_on([](Job& job) {
    job.launch("aten::mul", 20 * us, kElementwise, 1 * ms);
    job.call("aten::empty", "cudaFree", 3 * ms);
  });
  REQUIRE(!answer.findings.empty());
  CHECK(answer.findings[0].id == "allocator_retries");
  REQUIRE(answer.findings[0].gain);
  CHECK(answer.findings[0].gain->speedup_low > 2);
  CHECK(find(answer, "device_allocation") == nullptr);
}

TEST_CASE("advice: the first launch of a kernel that loads its code is no property of a step") {
  const auto step_of = [](bool always) {
    return [always, step = 0](Job& job) mutable {
      job.launch("aten::mul", 20 * us, kElementwise, 10 * us);
      job.launch("aten::mm", always || step == 0 ? 20 * ms : 20 * us, "ampere_bf16_s16816gemm", 10 * us);
      step++;
    };
  };
  auto once = step_of(false), always = step_of(true);
  const Answer answer = advice_on([&](Job& job) { once(job); });
  REQUIRE(!answer.findings.empty());
  CHECK(answer.findings[0].id == "device_start_up");
  CHECK(answer.findings[0].where.op == "aten::mm");
  CHECK(evidence(answer.findings[0], "Kernels launched for the first time") == 1);
  const Answer slow = advice_on([&](Job& job) { always(job); });  // the others are as long: its code was not missing
  const Finding* found = find(slow, "device_start_up");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high < 1.2);
}

TEST_CASE("advice: products of float32 without tensor cores, by the names of their kernels") {
  const auto found_for = [](std::string_view kernel) {
    return advice_on([&](Job& job) { job.launch("aten::mm", 20 * us, kernel, 10 * ms); });
  };
  const Answer answer = found_for("ampere_sgemm_128x64_tn");
  REQUIRE(answer.findings.size() == 1);
  CHECK(answer.findings[0].id == "no_tensor_cores");
  CHECK(answer.findings[0].where.op == "aten::mm");
  REQUIRE(answer.findings[0].gain);
  // Of an A100: 156 TFLOP/s in place of 19.5, or half as much more.
  CHECK(answer.findings[0].gain->speedup_high == doctest::Approx(8).epsilon(0.05));
  CHECK(answer.findings[0].gain->speedup_low == doctest::Approx(4).epsilon(0.05));
  CHECK(found_for("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_ffma_cublas").findings.size() == 1);
  CHECK(found_for("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x16_cublas").findings.empty());
  CHECK(found_for("ampere_s1688gemm_fp16_128x64_tn").findings.empty());
}

TEST_CASE("advice: what a library does to bring tensors into its own order is a layout that the program chose") {
  const auto step_with = [](std::string_view kernel) {
    return [=](Job& job) {
      job.launch("aten::cudnn_convolution", 20 * us, kernel, 3 * ms);
      job.launch("aten::cudnn_convolution", 20 * us, "sm90_xmma_fprop_implicit_gemm_bf16", 7 * ms);
    };
  };
  const Answer answer = advice_on(step_with("void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16>"));
  const Finding* found = find(answer, "layout_copies");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->where.op == "aten::cudnn_convolution");
  CHECK(found->gain->speedup_high == doctest::Approx(10.0 / 7).epsilon(0.02));
  CHECK(found->next.value_or("").find("channels_last") != std::string::npos);
  CHECK(find(advice_on(step_with(kElementwise)), "layout_copies") == nullptr);
}

TEST_CASE("advice: a batch norm by planes is the faster at best for channels that lie side by side") {
  const auto high_of = [](std::string_view norm, std::string_view dims = "[[8, 64, 56, 56]]") {
    const Answer answer = advice_on([=](Job& job) {
      job.launch("aten::cudnn_convolution", 20 * us, "cudnn::engines_precompiled::nchwToNhwcKernel<__half>", 2 * ms);
      job.launch("aten::cudnn_convolution", 20 * us, "sm90_xmma_fprop_implicit_gemm_bf16", 4 * ms);
      job.launch("aten::native_batch_norm", 20 * us, norm, 4 * ms, {.dims = dims});
    });
    const Finding* found = find(answer, "layout_copies");
    REQUIRE(found != nullptr);
    REQUIRE(found->gain);
    CHECK(found->where.op == "aten::cudnn_convolution");
    CHECK(found->gain->speedup_low == doctest::Approx(10.0 / 8.2).epsilon(0.02));
    const bool has_norms = norm.find("channels_last") == norm.npos && dims.find("56") != dims.npos;
    if (has_norms) {
      CHECK(evidence(*found, "Of these batch norms by planes, which may be faster then") ==
            doctest::Approx(0.4).epsilon(0.02));
    }
    return found->gain->speedup_high;
  };
  CHECK(high_of("void at::native::batch_norm_backward_kernel<float>") == doctest::Approx(10 / 5.4).epsilon(0.02));
  CHECK(high_of("void at::native::batch_norm_backward_kernel<float>", "[[8, 64, 3136]]") ==
        doctest::Approx(1.25).epsilon(0.02));
  CHECK(high_of("void at::native::batch_norm_backward_elemt_channels_last_kernel") ==
        doctest::Approx(1.25).epsilon(0.02));
}

TEST_CASE("advice: a step in which a host waits for the device that it was ahead of takes no longer than the others") {
  const auto step = [](Job& job) { job.launch("aten::mm", 1 * ms, "ampere_bf16_s16816gemm", 10 * ms); };
  std::vector<std::int64_t> ahead, late;
  for (int i = 0; i < 160; i++) {
    ahead.push_back(i % 8 == 2 ? 73 * ms : 1 * ms);  // of eight steps 80 ms, as the device takes
    late.push_back(i % 8 == 2 ? 90 * ms : 10 * ms);
  }
  CHECK(find(advice_on(step, ahead), "long_steps") == nullptr);
  CHECK(find(advice_on(step, late), "long_steps") != nullptr);
}

TEST_CASE("advice: what recording costs a host beside its device's work is known from how long steps take without it") {
  const auto step = [](Job& job) {
    job.launch("aten::mm", 10 * us, "gemm", 3 * ms);
    for (int i = 0; i < 40; i++) job.compute("aten::cpu_work", 50 * us);  // hidden behind the device
    job.copy("aten::_local_scalar_dense", "Memcpy DtoH (Device -> Pageable)", 4, 1 * us, true);
    for (int i = 0; i < 60; i++) job.compute("aten::cpu_work", 50 * us);
  };
  const double recorded_ms = step_ms(step, 100 * ms);
  REQUIRE(recorded_ms == doctest::Approx(6.03).epsilon(0.01));
  CHECK(step_ms(step, 5700 * us) == doctest::Approx(5.7).epsilon(0.01));
}

TEST_CASE("advice: a device that works on when the last step has ended makes that step no longer than the others") {
  const auto step = [](Job& job) {
    job.launch("aten::mm", 10 * us, "gemm", 3 * ms);
    job.copy("aten::_local_scalar_dense", "Memcpy DtoH (Device -> Pageable)", 4, 1 * us, true);
    for (int i = 0; i < 60; i++) job.compute("aten::cpu_work", 50 * us);
    job.launch("aten::mul", 10 * us, "mul_kernel", 2 * ms);
  };
  // The host takes 6.03 ms for the first of four steps and 8.03 ms for each other, and then the device 2 ms.
  const double recorded_ms = step_ms(step, 100 * ms);
  REQUIRE(recorded_ms == doctest::Approx(8.03).epsilon(0.01));
  CHECK(step_ms(step, 7530 * us) == doctest::Approx(recorded_ms).epsilon(0.01));
}

TEST_CASE("advice: where the device alone takes the time, what its host costs is not taken off again and again") {
  const auto step = [](Job& job) {
    job.launch("aten::mm", 20 * us, "ampere_sgemm_128x64_tn", 6 * ms);
    for (int i = 0; i < 100; i++) job.compute("aten::cpu_work", 50 * us);
  };
  const Answer answer = advice_on(step, std::vector<std::int64_t>(100, 5800 * us));
  const Finding* found = find(answer, "no_tensor_cores");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  // Then the host binds: with 5.02 ms as recorded, 3.8 ms if all were taken off that notes can cost.
  CHECK(found->gain->speedup_high < 1.35);
}

TEST_CASE("advice: what recording costs the host of a busy device is known from steps that did not wait for it") {
  // Recorded, the host takes 4 ms of small operators in a step; in steps that nobody records 2.
  const auto step = [](Job& job) {
    job.launch("aten::mm", 20 * us, "ampere_sgemm_128x64_tn", 8 * ms);
    for (int i = 0; i < 400; i++) job.compute("aten::view", 10 * us);
  };
  std::vector<std::int64_t> marked;
  for (int i = 0; i < 160; i++) marked.push_back(i % 20 < 3 ? 2 * ms : 8 * ms);
  const auto low_of = [&](const Answer& answer) {
    const Finding* found = find(answer, "no_tensor_cores");
    REQUIRE(found != nullptr);
    REQUIRE(found->gain);
    return found->gain->speedup_high;
  };
  CHECK(low_of(advice_on(step)) == doctest::Approx(2).epsilon(0.1));  // then the host binds, as it was recorded
  CHECK(low_of(advice_on(step, marked)) > 3);
}

}  // namespace
}  // namespace device_causes
}  // namespace stepscope::diagnose
