// The sampler's threads: one that hangs in a driver delays nobody, and nothing is written once the sampler is gone.
#include "collect/telemetry/sampler.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/temp_fixture.h"
#include "base/whole_file.h"
#include "collect/telemetry/probe.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Where calls into a driver stand still until they are let go.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    waiting_++;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
    waiting_--;
    changed_.notify_all();
  }
  void set(bool is_open) {
    const std::lock_guard lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }
  bool is_waited_at_within(std::chrono::seconds most, int many = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [&] { return waiting_ == many; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
  int waiting_ = 0;
};

Gate at_open, at_sample;
std::atomic<int> sources{0};

struct Counting : Source {
  explicit Counting(const char* source_name) : name(source_name) { sources++; }
  ~Counting() override { sources--; }
  void follow(const std::vector<Group>& groups) override { target = groups.empty() ? "" : groups[0].target; }
  void sample(Sink& sink) override {
    sink.add(sink.series({name, name, target, "count", run::SeriesKind::counter, ""}), ++count);
  }
  const char* name;
  std::string target;
  std::int64_t count = 0;
};

struct Driver : Counting {
  Driver() : Counting("driver") {}
  void sample(Sink& sink) override {
    at_sample.pass();
    Counting::sample(sink);
  }
};

Result<std::unique_ptr<Source>> open_kernel(const Roots&) { return std::make_unique<Counting>("kernel"); }
Result<std::unique_ptr<Source>> open_driver(const Roots&) {
  at_open.pass();
  return std::make_unique<Driver>();
}
Result<std::unique_ptr<Source>> open_none(const Roots&) { return fail({ErrorKind::unsupported, "no GPU", "", {}, ""}); }

const std::vector<Collector> kBoth{{"driver", "", 10, open_driver, false, true}, {"kernel", "", 10, open_kernel}};

std::unique_ptr<Sampler> started(const TempFolder& folder, std::span<const Collector> from) {
  SamplerOptions options;
  options.from = from;
  auto sampler = Sampler::start(folder.path().string(), options, [] {
    return std::vector<Group>{{"rank 0", {{1, 1, 0}}}};
  });
  REQUIRE(sampler);
  return std::move(*sampler);
}

std::size_t samples_in(const TempFolder& folder, std::string_view name, std::string_view target) {
  const auto files = run::sample_files(folder.path().string());
  REQUIRE(files.size() == 1);
  const auto read = run::read_samples(files[0]);
  REQUIRE(read);
  for (const run::Series& one : read->series) {
    if (one.about.name == name && one.about.target == target) return one.samples.size();
  }
  return 0;
}

bool are_gone_within(std::chrono::seconds most) {
  for (const auto end = Clock::now() + most; sources > 0;) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

}  // namespace

TEST_CASE("sampler: who is watched is told to both threads") {
  const TempFolder folder;
  auto sampler = started(folder, kBoth);
  std::this_thread::sleep_for(300ms);
  CHECK(sampler->cpu_ns() > 0);
  sampler.reset();
  CHECK(samples_in(folder, "kernel", "rank 0") >= 3);
  CHECK(samples_in(folder, "driver", "rank 0") >= 3);
  CHECK(sources == 0);
}

TEST_CASE("sampler: a driver that hangs delays no other collector, and the end by two seconds at most") {
  const TempFolder folder;
  at_sample.set(false);
  auto sampler = started(folder, kBoth);
  REQUIRE(at_sample.is_waited_at_within(10s));
  const std::uint64_t before = sampler->samples();
  std::this_thread::sleep_for(500ms);
  CHECK(sampler->samples() >= before + 5);
  const auto began = Clock::now();
  const std::vector<std::string> problems = sampler->end();
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].find("the driver of a GPU did not answer") != std::string::npos);
  sampler.reset();
  const auto took = Clock::now() - began;
  CHECK(took >= 1900ms);
  CHECK(took < 10s);
  CHECK(sources == 1);
  const auto files = run::sample_files(folder.path().string());
  const std::string text = whole_file(files.at(0));
  at_sample.set(true);  // the driver answers after all
  CHECK(are_gone_within(10s));
  CHECK(whole_file(files.at(0)) == text);
  CHECK(samples_in(folder, "driver", "rank 0") == 0);
}

TEST_CASE("sampler: a driver that hangs when it is opened does not keep the rest from beginning") {
  const TempFolder folder;
  at_open.set(false);
  auto sampler = started(folder, kBoth);
  std::this_thread::sleep_for(200ms);
  CHECK(sampler->samples() >= 3);
  CHECK(sampler->absent().empty());  // nobody knows yet
  at_open.set(true);
  REQUIRE(at_open.is_waited_at_within(10s, 0));
  std::this_thread::sleep_for(300ms);
  sampler.reset();
  CHECK(samples_in(folder, "driver", "rank 0") >= 1);
  CHECK(sources == 0);
}

TEST_CASE("sampler: a probe of all collectors waits for a driver that hangs no longer than two seconds") {
  at_open.set(false);
  const auto began = Clock::now();
  const std::vector<Probe> probes = probe(kBoth);
  CHECK(Clock::now() - began < 10s);
  REQUIRE(probes.size() == 2);
  CHECK_FALSE(probes[1].absent);
  REQUIRE(probes[0].absent);
  CHECK(probes[0].absent->message == "the driver does not answer");
  at_open.set(true);
  CHECK(are_gone_within(10s));
  CHECK_FALSE(probe(kBoth)[0].absent);
}

TEST_CASE("sampler: a driver that is not there is told at once") {
  const TempFolder folder;
  const std::vector<Collector> none{{"driver", "", 10, open_none, false, true}};
  const auto began = Clock::now();
  const auto sampler = started(folder, none);
  CHECK(Clock::now() - began < 1900ms);
  REQUIRE(sampler->absent().size() == 1);
  CHECK(sampler->absent()[0].collector == "driver");
}

}  // namespace stepscope::collect::telemetry
