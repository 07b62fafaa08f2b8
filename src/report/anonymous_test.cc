// Hosts, users and absolute paths leave a report; everything else stays.
#include "report/anonymous.h"

#include <doctest/doctest.h>

namespace stepscope::report {
namespace {

std::string anonymous(const std::string& text, std::vector<std::string> hosts = {}) {
  Report report;
  report.hosts = std::move(hosts);
  report.issues.push_back({"code", Severity::info, text, "", 1, "", std::nullopt, std::nullopt});
  anonymize(report);
  return report.issues.front().sentence;
}

}  // namespace

TEST_CASE("anonymous: of an absolute path the last part stays") {
  CHECK(anonymous("/home/ann/proj/train.py(12): forward") == "train.py(12): forward");
  CHECK(anonymous("see '/data/x/' and (/opt/a/b.py:3)") == "see 'x' and (b.py:3)");
  CHECK(anonymous("12 GB/s, a / b, and/or, jit(f)/jit(main)/dot") == "12 GB/s, a / b, and/or, jit(f)/jit(main)/dot");
  CHECK(anonymous("traces/rank0/a.json") == "traces/rank0/a.json");
  CHECK(anonymous("void at::native::(anonymous namespace)::f<float, 4>(int*)") ==
        "void at::native::(anonymous namespace)::f<float, 4>(int*)");
}

TEST_CASE("anonymous: hosts and users get numbers, in whole words") {
  CHECK(anonymous("node-7 and node-70, gpu_memcpy on gpu", {"node-7", "gpu"}) ==
        "host-1 and node-70, gpu_memcpy on host-2");
  CHECK(anonymous("python /home/ann/x.py --owner ann") == "python x.py --owner user-1");
  Report report;
  report.inputs.push_back({.path = "/scratch/ann/out/node-3_4711.17000.pt.trace.json.gz"});
  report.answers.push_back({.name = "ranks", .tables = {{.name = "t", .rows = {{std::string("node-3")}}}}});
  report.answers.front().series = {{.name = "x", .target = "node-3 /mnt/ann/data"}};
  report.answers.front().bands = {{"steps", 0, {{0, 1, "/home/ann/step"}}}};
  anonymize(report);
  CHECK(report.answers.front().series.front().target == "host-1 data");
  CHECK(report.answers.front().bands.front().bands.front().label == "step");
  CHECK(report.inputs.front().path == "host-1_4711.17000.pt.trace.json.gz");
  CHECK(std::get<std::string>(report.answers.front().tables.front().rows[0][0]) == "host-1");
}

}  // namespace stepscope::report
