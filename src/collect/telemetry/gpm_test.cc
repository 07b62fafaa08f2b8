// Activity counters of NVIDIA GPUs by the stand-in for their driver's library.
#include "base/temp_fixture.h"
#include "collect/telemetry/nvml_fixture.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

constexpr std::int64_t kMs = 1'000'000;

void set_gpu(StandInNvml& nvml) {
  nvml.set("gpus", 1);
  nvml.set("gpm.0", 1);
  nvml.set("metric2.0", 80);
  nvml.set("metric5.0", 40);
  nvml.set("metric10.0", -1);  // no number
  nvml.set("metric20.0", 3);
}

}  // namespace

TEST_CASE("telemetry: activity of a GPU between two samples that lie 100 ms apart") {
  const TempFolder folder;
  StandInNvml nvml;
  NvmlRoots at(nvml, folder.path());
  set_gpu(nvml);
  Heard heard;
  {
    const auto source = opened("gpm", at.roots);
    at.now_ns += 99 * kMs;
    source->sample(heard);
    CHECK(heard.values.empty());
    at.now_ns += kMs;
    source->sample(heard);
    CHECK(heard.values == std::map<std::string, double>{{"gpu_sm_active gpu 0", 0.8},
                                                        {"gpu_tensor_active gpu 0", 0.4},
                                                        {"gpu_pcie_send_rate gpu 0", 3.0 * 1024 * 1024}});
    nvml.set("gpm.0.error", 999);  // for a moment
    heard.values.clear();
    at.now_ns += 1000 * kMs;
    source->sample(heard);
    CHECK(heard.values.empty());
    nvml.unset("gpm.0.error");
    at.now_ns += 1000 * kMs;
    source->sample(heard);
    CHECK(heard.values.empty());  // the first of a new pair
    at.now_ns += 1000 * kMs;
    nvml.set("metric2.0", 10);
    source->sample(heard);
    CHECK(heard.values["gpu_sm_active gpu 0"] == doctest::Approx(0.1));
    nvml.set("lost.0", 15);
    heard.values.clear();
    at.now_ns += 1000 * kMs;
    source->sample(heard);
    CHECK(heard.values.empty());
  }
  CHECK(nvml.get("gpm_buffers") == 0);
  CHECK(nvml.get("open") == 0);
}

TEST_CASE("telemetry: activity of the instances of MIG, each its own") {
  const TempFolder folder;
  StandInNvml nvml;
  NvmlRoots at(nvml, folder.path());
  set_gpu(nvml);
  nvml.set("most_mig.0", 2);
  nvml.set("mig.0.0", 1);
  nvml.set("mig.0.1", 1);
  for (const char* one : {"0.mig.0", "0.mig.1"}) nvml.set(std::string("gpm.") + one, 1);
  nvml.set("metric2.0.mig.1", 30);
  Heard heard;
  const auto source = opened("gpm", at.roots);
  at.now_ns += 1000 * kMs;
  source->sample(heard);
  CHECK(heard.values == std::map<std::string, double>{{"gpu_sm_active gpu 0 mig 1", 0.3}});
}

TEST_CASE("telemetry: why there is no activity of GPUs") {
  const TempFolder folder;
  StandInNvml nvml;
  NvmlRoots at(nvml, folder.path());
  nvml.set("gpus", 1);
  CHECK(why_absent("gpm", at.roots).find("Use a GPU from Hopper on") != std::string::npos);  // an A100
  nvml.set("gpm.0", 1);
  nvml.set("gpm.0.error", 4);
  CHECK(why_absent("gpm", at.roots).find("NVreg_RestrictProfilingToAdminUsers") != std::string::npos);
  CHECK(nvml.get("gpm_buffers") == 0);
  nvml.set("init.error", 9);
  CHECK(why_absent("gpm", at.roots).find("driver is not loaded") != std::string::npos);
  StandInNvml old("stand_in_nvml_old");
  old.set("gpus", 1);
  NvmlRoots then(old, folder.path());
  CHECK(why_absent("gpm", then.roots).find("Use a GPU from Hopper on") != std::string::npos);
}

}  // namespace stepscope::collect::telemetry
