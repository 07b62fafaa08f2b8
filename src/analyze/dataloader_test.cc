#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

Run loading(const std::string& loader, Ns wait, bool device) {
  TraceFixture f;
  const TrackId cpu = f.host("1"), worker = f.host("2"), gpu = f.stream("7");
  for (int step = 0; step < 3; step++) {
    const Ns t = step * 1'000;
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), t, 1'000);
    f.annotation(cpu, loader, t + 10, wait);
    f.op(cpu, "aten::stack", t + 20, 30);  // inside the loader: not another wait
    f.annotation(worker, "dataloader pin memory", t + 10, 700);
    f.launch(cpu, "cudaLaunchKernel", t + 500, 5, step + 1);
    if (device) f.kernel(gpu, "sgemm", t + 60, 900, step + 1);
  }
  return run_of(std::move(f));
}

TEST_CASE("dataloader: waits of the step's thread, exposed where the device is idle") {
  const std::string single = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  const Answer answer = ask(loading(single, 200, true), "dataloader");
  CHECK(ns(answer, "wait_per_step_ns") == 200);
  CHECK(real(answer, "wait_share") == doctest::Approx(0.2));
  CHECK(real(answer, "exposed_share") == doctest::Approx(0.05));  // 50 of each 1,000: behind that the device works
  CHECK(answer.findings.empty());
  CHECK(cell(answer, "sources", "name", single, "calls") == Value(Ns{3}));
  CHECK(cell(answer, "sources", "name", single, "step_thread") == Value(true));
  CHECK(cell(answer, "sources", "name", "dataloader pin memory", "step_thread") == Value(false));
}

TEST_CASE("dataloader: the advice depends on where batches are loaded") {
  for (const std::string kind : {"_SingleProcess", "_MultiProcessing"}) {
    const Answer answer =
        ask(loading("enumerate(DataLoader)#" + kind + "DataLoaderIter.__next__", 200, false), "dataloader");
    REQUIRE(answer.findings.size() == 1);
    CHECK(answer.findings[0].id == "dataloader_wait");
    CHECK_FALSE(answer.findings[0].gain);
    CHECK_FALSE(answer.findings[0].gain_reason.empty());
    const bool single = kind == "_SingleProcess";
    CHECK((answer.findings[0].next->find("num_workers=0") != std::string::npos) == single);
  }
}

TEST_CASE("dataloader: where batches were ready, the workers are not what is waited for") {
  for (const std::string ready : {"300", "980"}) {
    Run run = loading("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 200, false);
    run.traces[0].metadata.push_back({"stepscope_batches_ready_permille", ready});
    run.traces[0].metadata.push_back({"stepscope_loader_busy_permille", "200"});
    const Answer answer = ask(run, "dataloader");
    REQUIRE(answer.findings.size() == 1);
    CHECK(answer.findings[0].changes.empty() == (ready == "980"));
    CHECK((answer.findings[0].next->find("keep up, so more of them would not help") != std::string::npos) ==
          (ready == "980"));
  }
}

TEST_CASE("dataloader: none seen is unknown") {
  TraceFixture f;
  f.op(f.host("1"), "aten::mm", 0, 10);
  CHECK(unknown(ask(run_of(std::move(f)), "dataloader"), "wait_share"));
}

}  // namespace
}  // namespace stepscope
