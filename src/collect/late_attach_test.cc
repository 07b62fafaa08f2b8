// Which processes the hooks do not come to by themselves.
#include "collect/late_attach.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/temp_fixture.h"

namespace stepscope::collect {
namespace {

std::string why(std::vector<std::string> command, const std::string& environment = "STEPSCOPE_RUN=/x") {
  const TempFolder proc;
  std::filesystem::create_directories(proc.path() / "7");
  proc.put("7/environ", environment + '\0');
  Process process;
  process.pid = 7;
  process.command = std::move(command);
  return why_without_hooks(process, proc.path().string());
}

}  // namespace

TEST_CASE("late attach: options of Python that keep the hooks out") {
  CHECK(why({"python3", "-I", "train.py"}) == "python -I keeps the hooks out");
  CHECK(why({"/usr/bin/python3.11", "-uE", "-m", "train"}) == "python -E keeps the hooks out");
  CHECK(why({"python", "-X", "dev", "-S", "t.py"}) == "python -S keeps the hooks out");
}

TEST_CASE("late attach: the job's own words are not Python's options") {
  CHECK(why({"python3", "train.py", "-I"}).empty());
  CHECK(why({"python3", "-m", "train", "-S"}).empty());
  CHECK(why({"python3", "-c", "import torch", "-E"}).empty());
  CHECK(why({"python3", "-WIgnore", "train.py"}).empty());
  CHECK(why({"python3", "-W", "Ignore", "-X", "Ix", "train.py"}).empty());
  CHECK(why({"perl", "-I", "lib"}).empty());
  CHECK(why({}).empty());
}

TEST_CASE("late attach: an environment without ours") {
  CHECK(why({"python3", "train.py"}, "HOME=/root") == "it was started with another environment");
}

}  // namespace stepscope::collect
