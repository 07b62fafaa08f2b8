#include "collect/nsys.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/temp_fixture.h"
#include "run/nsys.h"

namespace stepscope::collect {
namespace fs = std::filesystem;
namespace {

bool has(const Arguments& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void make_program(const std::string& path) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << "#!/bin/sh\n";
  chmod(path.c_str(), 0700);
}

}  // namespace

TEST_CASE("nsys: its options are parted as a shell does it") {
  CHECK(*parse_nsys_options(" -s  cpu ") == Arguments{"-s", "cpu"});
  CHECK(*parse_nsys_options("--env-var='A=b c' \"\"x") == Arguments{"--env-var=A=b c", "x"});
  CHECK(*parse_nsys_options("-e ''") == Arguments{"-e", ""});
  for (const char* wrong : {"", " ", "-e 'A", "-o other", "-oother", "--output=x"}) {
    CAPTURE(wrong);
    const auto parsed = parse_nsys_options(wrong);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().kind == ErrorKind::usage);
  }
}

TEST_CASE("nsys: the job stands behind its options, the report in the run folder") {
  Settings settings;
  settings.capture.steps = {{10, 15}};
  const Arguments words = nsys_command("/opt/nsys", settings, "/runs/50%h", {"python", "-c", "pass"});
  CHECK(words.front() == "/opt/nsys");
  CHECK(words[1] == "profile");
  CHECK(Arguments(words.end() - 4, words.end()) ==
        Arguments{"--output=/runs/50%%h/nsys/report", "python", "-c", "pass"});
  CHECK(has(words, "--capture-range-end=stop"));
}

TEST_CASE("nsys: one capture range for each window") {
  Settings settings;
  const auto end = [&](const char* expected) {
    return has(nsys_command("nsys", settings, "/run", {"true"}), std::string("--capture-range-end=") + expected);
  };
  settings.capture.steps = {{1, 2}, {4, 5}, {7, 8}};
  CHECK(end("repeat:3"));
  settings.capture = {};
  settings.capture.cycle = Cycle{0, 2, 5, 4};
  CHECK(end("repeat:4"));
  settings.capture.cycle->repeat = 1;
  CHECK(end("stop"));
  settings.capture.cycle->repeat = 0;
  CHECK(end("repeat"));
}

TEST_CASE("nsys: what is passed on wins over what is usual") {
  Settings settings;
  settings.nsys_options = {"-t", "cuda", "--capture-range=none", "--cpuctxsw", "process-tree"};
  const Arguments words = nsys_command("nsys", settings, "/run", {"true"});
  CHECK_FALSE(has(words, "--trace=nvtx,cuda"));
  CHECK_FALSE(has(words, "--capture-range=cudaProfilerApi"));
  CHECK_FALSE(has(words, "--cpuctxsw=none"));
  CHECK(has(words, "--sample=none"));
  CHECK(has(words, "--capture-range-end=stop"));
  CHECK(has(words, "process-tree"));
}

TEST_CASE("nsys: found in PATH, else the newest that its installer left") {
  const TempFolder folder;
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder / "bin").c_str(), 1);
  CHECK_FALSE(run::find_nsys(folder / "nvidia"));
  make_program(folder / "nvidia/nsight-systems/2024.5.1/bin/nsys");
  make_program(folder / "nvidia/nsight-systems/2025.1.1/bin/nsys");
  make_program(folder / "nvidia/nsight-compute/2026.1/bin/nsys");
  CHECK(run::find_nsys(folder / "nvidia") == folder / "nvidia/nsight-systems/2025.1.1/bin/nsys");
  make_program(folder / "bin/nsys");
  CHECK(run::find_nsys(folder / "nvidia") == folder / "bin/nsys");
  setenv("PATH", path.c_str(), 1);
}

}  // namespace stepscope::collect
