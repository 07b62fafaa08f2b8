#include "collect/telemetry/sampler.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <ctime>
#include <mutex>

#include "collect/telemetry/sample_file.h"

namespace stepscope::collect::telemetry {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t own_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * kSecond + time.tv_nsec;
}

// How often this collector is to be sampled, in ms; 0: not at all.
int interval_of(const Collector& collector, const SamplerOptions& options) {
  int usual = options.interval_ms > 0 ? options.interval_ms : collector.interval_ms;
  if (collector.on_request) usual = std::max(usual, collector.interval_ms);  // it may cost the job
  if (options.only.empty()) return collector.on_request ? 0 : usual;
  for (const Choice& choice : options.only) {
    if (choice.collector == collector.name) return choice.interval_ms > 0 ? choice.interval_ms : usual;
  }
  return 0;
}

// "500ms", "1s", "0.1" (seconds); 0: none of these.
int parse_interval(std::string_view text) {
  double scale = 1000;
  if (text.ends_with("ms")) {
    scale = 1;
    text.remove_suffix(2);
  } else if (text.ends_with('s')) {
    text.remove_suffix(1);
  }
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool usable = read.ec == std::errc() && read.ptr == text.data() + text.size() && number > 0;
  return usable && number * scale <= 3'600'000 ? std::max(1, static_cast<int>(number * scale)) : 0;
}

}  // namespace

struct Sampler::Impl {
  // When something is due again: on a grid, so that a late sample does not shift all that follow.
  class Due {
   public:
    explicit Due(std::int64_t every_ns) : every_ns_(every_ns) {}
    std::int64_t at() const { return at_ns_; }
    void done(std::int64_t now_ns) {
      if (at_ns_ == 0) at_ns_ = now_ns;
      at_ns_ += ((now_ns - at_ns_) / every_ns_ + 1) * every_ns_;
    }

   private:
    std::int64_t every_ns_, at_ns_ = 0;
  };

  struct Running {
    std::unique_ptr<Source> source;
    Due due;
  };

  explicit Impl(SampleFile sample_file) : file(std::move(sample_file)) {}

  SampleFile file;
  std::vector<Running> sources;
  FindGroups find_groups;
  std::vector<Group> groups;
  std::mutex mutex;
  std::condition_variable wake;
  bool ends = false;
  std::thread thread;

  void look_for_processes() {
    std::vector<Group> found = find_groups();
    if (found == groups) return;
    groups = std::move(found);
    for (const Running& one : sources) one.source->follow(groups);
  }

  void run(Sampler& sampler) {
    prctl(PR_SET_NAME, "stepscope-tele");
    Due processes(kSecond), clock(kSecond);
    for (;;) {
      std::int64_t next = monotonic_ns() + kSecond;
      const auto at_its_time = [&](Due& due, const auto& act) {
        if (const std::int64_t now = monotonic_ns(); due.at() <= now) {
          due.done(now);
          act();
        }
        next = std::min(next, due.at());
      };
      if (find_groups) at_its_time(processes, [&] { look_for_processes(); });
      at_its_time(clock, [&] { file.clock(); });
      for (Running& one : sources) at_its_time(one.due, [&] { one.source->sample(file); });
      sampler.cpu_ns_ = own_cpu_ns();
      sampler.samples_ = file.written();
      std::unique_lock lock(mutex);
      const auto pause = std::chrono::nanoseconds(std::max<std::int64_t>(0, next - monotonic_ns()));
      if (wake.wait_for(lock, pause, [&] { return ends; })) return;
    }
  }
};

std::string collector_names() {
  std::string names;
  for (const Collector& one : collectors()) names += (names.empty() ? "" : ", ") + std::string(one.name);
  return names;
}

Result<std::vector<Choice>> parse_collectors(std::string_view text) {
  std::vector<Choice> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view item = text.substr(at, end - at);
    at = end + 1;
    const std::size_t colon = item.find(':');
    const std::string name(item.substr(0, colon));
    const int interval_ms = colon == item.npos ? 0 : parse_interval(item.substr(colon + 1));
    if (colon != item.npos && interval_ms == 0) {
      return fail({ErrorKind::usage,
                   "'" + std::string(item.substr(colon + 1)) + "' is no time between two samples",
                   {},
                   {},
                   "Write it as " + name + ":500ms or " + name + ":1s, up to an hour"});
    }
    bool known = false;
    for (const Collector& one : collectors()) {
      if (name != one.name && (name != "default" || one.on_request)) continue;
      std::erase_if(out, [&](const Choice& before) { return before.collector == one.name; });
      out.push_back({std::string(one.name), interval_ms});
      known = true;
    }
    if (!known) {
      return fail(
          {ErrorKind::usage, "'" + name + "' is no collector", {}, {}, "There are: default, " + collector_names()});
    }
  }
  return out;
}

Result<std::unique_ptr<Sampler>> Sampler::start(const std::string& run_folder, const SamplerOptions& options,
                                                FindGroups find_groups) {
  auto file = SampleFile::create(run_folder, options.most_bytes);
  if (!file) return fail(file.error());
  std::unique_ptr<Sampler> sampler(new Sampler);
  sampler->impl_ = std::make_unique<Impl>(std::move(*file));
  sampler->impl_->find_groups = std::move(find_groups);
  for (const Collector& collector : collectors()) {
    const int interval_ms = interval_of(collector, options);
    if (interval_ms == 0) continue;
    auto source = collector.open(options.roots);
    if (!source) {
      sampler->absent_.push_back({std::string(collector.name), source.error()});
      continue;
    }
    sampler->impl_->sources.push_back({std::move(*source), Impl::Due(std::int64_t{interval_ms} * 1'000'000)});
  }
  sigset_t all, before;  // signals are for the thread that started us
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Sampler& self = *sampler;
  self.impl_->thread = std::thread([&self] { self.impl_->run(self); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return sampler;
}

Sampler::~Sampler() {
  if (!impl_ || !impl_->thread.joinable()) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->ends = true;
  }
  impl_->wake.notify_one();
  impl_->thread.join();
}

}  // namespace stepscope::collect::telemetry
