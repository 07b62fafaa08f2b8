// The sampler and its sources on trees of files made here, and on processes of this machine.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "base/temp_fixture.h"
#include "collect/telemetry/groups.h"
#include "collect/telemetry/member_totals.h"
#include "collect/telemetry/numbers.h"
#include "collect/telemetry/sample_file.h"
#include "collect/telemetry/sampler.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

std::vector<run::Sample> samples_of(const run::Samples& all, std::string_view name, std::string_view target) {
  for (const run::Series& series : all.series) {
    if (series.about.name == name && series.about.target == target) return series.samples;
  }
  return {};
}

std::string io_text(long read, long written) {
  return "rchar: " + std::to_string(read) + "\nwchar: " + std::to_string(written) +
         "\nsyscr: 1\nsyscw: 1\nread_bytes: 0\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n";
}

}  // namespace

TEST_CASE("telemetry: numbers behind keys") {
  const std::string text = "rchar: 12\nread_bytes: 7\nthrottled_usec 5\nMemFree:   77 kB\n";
  CHECK(number_after(text, "rchar") == 12);
  CHECK(number_after(text, "throttled_usec") == 5);
  CHECK(number_after(text, "MemFree") == 77);
  CHECK_FALSE(number_after(text, "throttled"));  // a shorter key
  CHECK_FALSE(number_after(text, "bytes"));
  CHECK_FALSE(number_after("", "rchar"));
  CHECK_FALSE(number_after("rchar: x\n", "rchar"));
}

TEST_CASE("telemetry: what is written is read again, in words and in order") {
  const TempFolder folder;
  auto file = SampleFile::create(folder.path().string(), 1 << 20);
  REQUIRE(file);
  const auto count = file->series({"io", "read", "rank 0", "bytes", run::SeriesKind::counter, "Bytes read"});
  const auto level = file->series({"memory", "rss", "rank \"0\"", "bytes", run::SeriesKind::gauge, "Memory"});
  CHECK(file->series({"io", "read", "rank 0", "bytes", run::SeriesKind::counter, "Bytes read"}) == count);
  for (int i = 0; i < 5; i++) {
    file->add(count, std::int64_t{1'000'000'000'000'000'000} + i * 10);  // far above what a double holds exactly
    file->add(level, 0.5 * i);
  }
  CHECK(file->series({"io", "written", "rank 0", "bytes", run::SeriesKind::counter, "Bytes written"}) == 3);
  const std::vector<Newest> newest = file->newest();
  REQUIRE(newest.size() == 3);
  CHECK(newest[0].value() == 1e18);
  CHECK(newest[1].about.name == "rss");
  CHECK(newest[1].value() == 2);
  CHECK(newest[1].monotonic_ns > 0);
  CHECK(newest[2].monotonic_ns == 0);
  file->flush();
  const auto read = run::read_samples(file->path());
  REQUIRE(read);
  CHECK(read->pid == getpid());
  REQUIRE(read->series.size() == 2);
  CHECK(read->series[1].about.target == "rank \"0\"");
  const auto counted = samples_of(*read, "read", "rank 0");
  REQUIRE(counted.size() == 5);
  CHECK(counted.front().value == 0);
  CHECK(counted.back().value == 40);
  CHECK(samples_of(*read, "rss", "rank \"0\"").back().value == 2);
  const auto now = std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  CHECK(std::abs(counted.back().t_ns - now) < 1'000'000'000);
  CHECK(read->dropped + read->backwards + read->unknown == 0);
}

TEST_CASE("telemetry: what is renamed is one series under its newest name") {
  const TempFolder folder;
  auto file = SampleFile::create(folder.path().string(), 1 << 20);
  REQUIRE(file);
  const run::SeriesAbout about{"io", "read", "pid 7", "bytes", run::SeriesKind::counter, ""};
  file->add(file->series(about), std::int64_t{10});
  file->rename("pid 7", "rank 0");
  file->add(file->series(about), std::int64_t{14});
  file->rename("pid 7", "rank 3");
  file->add(file->series({"cpu", "cpu_time", "pid 7", "ns", run::SeriesKind::counter, ""}), std::int64_t{1});
  file->flush();
  const auto read = run::read_samples(file->path());
  REQUIRE(read);
  REQUIRE(read->series.size() == 2);
  CHECK(samples_of(*read, "read", "rank 3").back().value == 4);
  CHECK(samples_of(*read, "cpu_time", "rank 3").size() == 1);
  CHECK(file->newest()[0].about.target == "rank 3");
  CHECK(read->backwards + read->unknown == 0);
}

TEST_CASE("telemetry: the file grows to its limit, then the oldest samples make room") {
  const TempFolder folder;
  auto file = SampleFile::create(folder.path().string(), 3 << 20);
  REQUIRE(file);
  CHECK(fs::file_size(file->path()) == 1 << 20);
  const auto series = file->series({"io", "read", "rank 0", "bytes", run::SeriesKind::counter, ""});
  const std::uint64_t fits = ((3 << 20) - run::kRingHeadBytes) / run::kSamplesFormat.record_bytes;
  for (std::uint64_t i = 0; i < fits + 1000; i++) file->add(series, static_cast<std::int64_t>(i));
  file->clock();
  file->flush();
  CHECK(fs::file_size(file->path()) == 3 << 20);
  const auto read = run::read_samples(file->path());
  REQUIRE(read);
  constexpr std::uint64_t kInFlight = run::kSamplesFormat.in_flight;  // may be overwritten already
  CHECK(read->dropped == 1002 + kInFlight);                           // with the clock's first record
  const auto counted = samples_of(*read, "read", "rank 0");
  CHECK(counted.size() + read->backwards == fits - 1 - kInFlight);  // two in the same nanosecond are one
  CHECK(counted.back().value == static_cast<double>(fits - 2 - kInFlight));
}

TEST_CASE("telemetry: damaged and foreign files are refused or read as far as they say something") {
  const TempFolder folder;
  CHECK_FALSE(run::read_samples(folder.put("a.samples", "STEPRING")));
  CHECK_FALSE(run::read_samples(folder.put("b.samples", std::string(8192, '\0'))));
  CHECK_FALSE(run::read_samples(folder / "none.samples"));
  auto file = SampleFile::create(folder.path().string(), 1 << 20);
  REQUIRE(file);
  const auto series = file->series({"io", "read", "rank 0", "bytes", run::SeriesKind::counter, ""});
  file->add(series, std::int64_t{10});
  file->add(series, std::int64_t{5});  // a counter does not fall: a device that came back
  file->add(series, std::int64_t{9});
  file->add(99, std::int64_t{1});
  file->flush();
  std::ofstream(run::series_file_of(file->path()), std::ios::app) << "{\"id\": 2, \"na";  // cut by a kill
  const auto read = run::read_samples(file->path());
  REQUIRE(read);
  CHECK(read->unknown == 1);
  CHECK(read->backwards == 1);
  CHECK(samples_of(*read, "read", "rank 0").back().value == 4);
  const std::string whole = file->path();
  fs::resize_file(whole, run::kRingHeadBytes + 4 * sizeof(run::SampleRecord) - 1);  // the clock and three samples
  const auto cut = run::read_samples(whole);
  REQUIRE(cut);
  CHECK(cut->cut == 2);
  CHECK(samples_of(*cut, "read", "rank 0").size() == 2);
  fs::resize_file(whole, 300);
  CHECK_FALSE(run::read_samples(whole));
}

TEST_CASE("telemetry: counters of processes that come and go never fall, and what a parent inherits counts once") {
  MemberTotals totals({{"io", "read", "", "bytes", run::SeriesKind::counter, ""}}, true);
  Heard heard;
  const Member parent{10, 1, 1}, child{11, 2, 10};
  std::map<pid_t, std::int64_t> now{{10, 100}, {11, 1000}};
  const auto sample = [&] {
    totals.sample([&](const Member& member, MemberTotals::Values& values) {
      const auto found = now.find(member.pid);
      if (found != now.end()) values = {found->second};
      return found != now.end();
    });
    totals.tell(heard);
    return heard.values.at("read rank 0");
  };
  totals.follow({{"rank 0", {parent, child}}});
  CHECK(sample() == 0);
  now = {{10, 110}, {11, 1500}};
  CHECK(sample() == 510);
  now = {{10, 1710}};  // the child ended at 1600 and was waited for
  CHECK(sample() == 610);
  totals.follow({{"rank 0", {parent}}});
  now = {{10, 1720}};
  CHECK(sample() == 620);
  totals.follow({{"rank 0", {parent, {11, 3, 10}}}});  // the number is used again
  now = {{10, 1720}, {11, 5}};
  CHECK(sample() == 620);
  now = {{10, 1720}, {11, 15}};
  CHECK(sample() == 630);
  now = {{10, 1720}};
  CHECK(sample() == 630);
  now = {{10, 1720}, {11, 9000}};  // a stranger has the number
  CHECK(sample() == 630);
  totals.follow({{"rank 0", {parent, {12, 9, 10, true}}}});  // began after the last look, and did something until now
  now = {{10, 1720}, {12, 40}};
  CHECK(sample() == 670);
  totals.follow({{"rank 1", {{12, 9, 10, true}}}});  // as it says now
  now = {{12, 45}};
  heard.values.clear();
  totals.sample([&](const Member& member, MemberTotals::Values& values) {
    values = {now.at(member.pid)};
    return true;
  });
  totals.tell(heard);
  CHECK(heard.values == std::map<std::string, double>{{"read rank 1", 5}});  // and nothing of whom nobody is left
  totals.follow({});
  totals.follow({{"rank 0", {parent, {12, 9, 10, true}}}});  // which counts from 0 once
  for (const std::int64_t read : {60, 70}) {
    now = {{10, 1720}, {12, read}};
    CHECK(sample() == 670 + read - 60);
  }
}

TEST_CASE("telemetry: rates are over the true time between samples where somebody sets the clock") {
  const TempFolder folder;
  auto file = SampleFile::create(folder.path().string(), 1 << 20);
  REQUIRE(file);
  const auto series = file->series({"cpu", "cpu_time", "rank 0", "ns", run::SeriesKind::counter, ""});
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  for (const std::int64_t count : {0, 20'000'000}) {
    file->add(series, count);
    wait();
  }
  file->clock();
  file->add(series, std::int64_t{40'000'000});
  file->flush();
  {  // the second pair of clocks lies behind the head, the first pair and two samples
    constexpr std::size_t kAt = run::kRingHeadBytes + 3 * sizeof(run::SampleRecord);
    std::fstream bytes(file->path(), std::ios::in | std::ios::out | std::ios::binary);
    run::SampleRecord clock{};
    bytes.seekg(kAt);
    bytes.read(reinterpret_cast<char*>(&clock), sizeof clock);
    REQUIRE(clock.series == run::kClockSeries);
    clock.value += 5'000'000'000;
    bytes.seekp(kAt);
    bytes.write(reinterpret_cast<const char*>(&clock), sizeof clock);
  }
  const auto read = run::read_samples(file->path());
  REQUIRE(read);
  CHECK(read->drift_ns >= 4'900'000'000);
  REQUIRE(read->series.size() == 1);
  const auto& [about, samples] = read->series[0];
  REQUIRE(samples.size() == 3);
  CHECK(samples[2].t_ns - samples[1].t_ns > 4'900'000'000);
  const double cores = run::rate_between(about, samples[1], samples[2]);
  CHECK(cores > 0.2);  // 20 ms of CPU in 20 ms and what a busy machine adds
  CHECK(cores <= 1.0);
}

TEST_CASE("telemetry: a file that is cut short under the writer ends the samples at most") {
  const TempFolder folder;
  auto file = SampleFile::create(folder.path().string(), 1 << 20);
  REQUIRE(file);
  const auto series = file->series({"io", "read", "rank 0", "bytes", run::SeriesKind::counter, ""});
  fs::resize_file(file->path(), 16);
  for (std::int64_t i = 0; i < 1000; i++) file->add(series, i);
  file->flush();
  CHECK(file->problem().empty());
  CHECK_FALSE(run::read_samples(file->path()));  // its head is gone
}

TEST_CASE("telemetry: the sources on a tree of /proc") {
  const TempFolder folder;
  const fs::path proc = folder.path() / "proc";
  put(proc / "self/io", io_text(0, 0));
  put(proc / "7/io", io_text(100, 10));
  put(proc / "8/io", io_text(1000, 0));
  put(proc / "7/statm", "1000 300 20 1 0 400 0\n");
  put(proc / "8/statm", "500 200 20 1 0 400 0\n");
  put(proc / "7/task/7/schedstat", "5000 70 3\n");
  Roots roots{proc.string(), (folder.path() / "sys").string(), {}};
  std::map<pid_t, std::int64_t> cpu{{7, 100}, {8, 900}};
  roots.cpu_ns = [&](pid_t pid) -> std::optional<std::int64_t> {
    const auto found = cpu.find(pid);
    return found == cpu.end() ? std::nullopt : std::optional(found->second);
  };
  Heard heard;
  const std::vector<Group> groups{{"rank 3", {{7, 1, 1}, {8, 2, 7}}}};
  std::vector<std::unique_ptr<Source>> sources;
  for (const char* name : {"cpu", "memory", "io"}) {
    sources.push_back(opened(name, roots));
    sources.back()->follow(groups);
    sources.back()->sample(heard);
  }
  CHECK(heard.values["rss rank 3"] == 500.0 * static_cast<double>(sysconf(_SC_PAGESIZE)));
  CHECK(heard.values["main_thread_time rank 3"] == 0);  // from here on, as all that is counted of a rank
  CHECK(heard.values["main_thread_wait rank 3"] == 0);
  put(proc / "7/io", io_text(150, 30));
  put(proc / "8/io", io_text(1100, 0));
  put(proc / "7/task/7/schedstat", "9000 80 4\n");
  cpu = {{7, 150}, {8, 1000}};
  for (const auto& source : sources) source->sample(heard);
  CHECK(heard.values["cpu_time rank 3"] == 150);
  CHECK(heard.values["main_thread_time rank 3"] == 4000);
  CHECK(heard.values["main_thread_wait rank 3"] == 10);
  CHECK(heard.values["read rank 3"] == 150);
  CHECK(heard.values["written rank 3"] == 20);
  CHECK(heard.values["written_to_devices rank 3"] == 0);
  put(proc / "9/task/9/schedstat", "100 1 1\n");
  sources[0]->follow({{"rank 3", {{9, 5, 1}}}});  // was started anew
  sources[0]->sample(heard);
  put(proc / "9/task/9/schedstat", "150 1 1\n");
  sources[0]->sample(heard);
  CHECK(heard.values["main_thread_time rank 3"] == 4050);
  sources[0]->follow({});  // as long as only other ranks are known
  sources[0]->follow({{"rank 3", {{9, 5, 1}}}});
  put(proc / "9/task/9/schedstat", "170 1 1\n");
  sources[0]->sample(heard);
  CHECK(heard.values["main_thread_time rank 3"] == 4070);
}

TEST_CASE("telemetry: a source that is not there says why") {
  const TempFolder folder;
  for (const Collector& collector : collectors()) {
    if (collector.name != "io") continue;
    const auto source = collector.open(Roots{folder.path().string(), folder.path().string(), {}});
    REQUIRE_FALSE(source);
    CHECK(to_text(source.error()).find("CONFIG_TASK_IO_ACCOUNTING") != std::string::npos);
  }
}

TEST_CASE("telemetry: a live process is sampled on its time, by a thread that costs little") {
  const TempFolder folder;
  const pid_t busy = fork();
  if (busy == 0) {
    for (volatile unsigned i = 0;; i = i + 1) {
    }
  }
  SamplerOptions options;
  options.interval_ms = 50;
  auto sampler = Sampler::start(folder.path().string(), options,
                                GroupFinder(options.roots, {busy}, [](bool) { return Targets(); }));
  REQUIRE(sampler);
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  kill(busy, SIGKILL);
  waitpid(busy, nullptr, 0);
  const std::int64_t cpu_ns = (*sampler)->cpu_ns();
  sampler->reset();
  CHECK(cpu_ns > 0);
  const auto files = run::sample_files(folder.path().string());
  REQUIRE(files.size() == 1);
  const auto read = run::read_samples(files[0]);
  REQUIRE(read);
  const auto cpu = samples_of(*read, "cpu_time", "pid " + std::to_string(busy));
  REQUIRE(cpu.size() >= 5);
  CHECK(cpu.back().value > 0);
  const double passed = static_cast<double>(cpu.back().t_ns - cpu.front().t_ns);
  CHECK(cpu.back().value < 1.1 * passed);  // one thread
  CHECK(samples_of(*read, "rss", "pid " + std::to_string(busy)).size() >= 5);
  CHECK(read->unknown + read->backwards == 0);
}

}  // namespace stepscope::collect::telemetry
