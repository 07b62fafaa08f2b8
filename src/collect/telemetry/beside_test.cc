// Several tasks of a launch on one host: one samples for all of them, and the next takes over when it ends.
#include "collect/telemetry/beside.h"

#include <unistd.h>

#include <filesystem>

#include "base/temp_fixture.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {

TEST_CASE("sampler: one of the tasks of a host samples, and the next takes over when it ends") {
  const TempFolder folder;
  const BesideOptions options{folder.path().string(), {{"memory", 0}}, {}, {}};
  SamplerBeside second(options);
  {
    SamplerBeside first(options);
    first.look({getpid()});
    second.look({getpid()});
    CHECK(first.samples());
    CHECK_FALSE(second.samples());
    CHECK(first.end().empty());
    second.look({getpid()});
    CHECK_FALSE(second.samples());  // until the whole of it is gone
  }
  second.look({getpid()});
  CHECK_FALSE(second.samples());  // its own job may be about to end, too
  second.look({getpid()});
  CHECK(second.samples());
  SamplerBeside third(options);
  third.look({getpid()});
  CHECK_FALSE(third.samples());
}

TEST_CASE("sampler: a collector that was named and is not here is told when it begins, one of the default is not") {
  const TempFolder folder;
  auto chosen = parse_collectors("default,amd_gpu");
  REQUIRE(chosen);
  SamplerBeside sampler({folder.path().string(), *chosen, {}, {}});
  const auto said = sampler.look({getpid()});
  if (!std::filesystem::exists("/sys/class/drm/card0/device/gpu_busy_percent")) {
    REQUIRE(said.size() == 1);
    CHECK(said[0].starts_with("no amd_gpu is sampled: "));
  }
  CHECK(sampler.look({getpid()}).empty());
  CHECK(sampler.end().empty());
}

TEST_CASE("sampler: where nothing can be locked each samples") {
  const TempFolder folder;
  Turn first(folder.path().string());
  REQUIRE(first.is_ours());
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "telemetry")) {
    std::filesystem::remove(entry.path());
    std::filesystem::create_directory(entry.path());  // which cannot be opened as a file
  }
  Turn second(folder.path().string());
  CHECK(second.is_ours());
}

}  // namespace stepscope::collect::telemetry
