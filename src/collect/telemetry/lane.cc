#include "collect/telemetry/lane.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace stepscope::collect::telemetry {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t own_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * kSecond + time.tv_nsec;
}

std::atomic<int> left_behind{0};  // threads that still hang

// The exit handlers of a driver's library could wait for what the thread holds that hangs in it.
void leave_at_once(int code, void*) {
  if (left_behind == 0) return;
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

void Lane::Due::done(std::int64_t now_ns) {
  at_ns_ = ((now_ns + every_ns_ / 2) / every_ns_ + 1) * every_ns_;  // half an interval off at least
}

void Lane::begin(const std::shared_ptr<Lane>& lane) {
  sigset_t all, before;  // signals are for the thread that started us
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  lane->thread_ = std::thread([lane] { lane->run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Lane::run() {
  prctl(PR_SET_NAME, "stepscope-tele");
  open();
  tell(is_open_);
  while (!ends_before(round())) {
  }
  if (last_) last_();
  sources_.clear();  // a driver may hang in this, too
  tell(ended_);
}

void Lane::open() {
  for (const Wanted& one : wanted_) {
    auto source = one.collector.open(roots_);
    if (source) {
      if (one.interval_ms == kOnlyOpened) continue;
      sources_.push_back({std::move(*source), Due(std::int64_t{one.interval_ms} * 1'000'000)});
      continue;
    }
    const std::lock_guard lock(mutex_);
    absent_.push_back({std::string(one.collector.name), source.error()});
  }
}

std::int64_t Lane::round() {
  std::int64_t next = monotonic_ns() + kSecond;
  const auto at_its_time = [&](Due& due, const auto& act) {
    if (const std::int64_t now = monotonic_ns(); due.at() <= now) {
      due.done(now);
      act();
    }
    next = std::min(next, due.at());
  };
  for (Chore& one : chores_) at_its_time(one.due, one.act);
  take_groups();
  for (Running& one : sources_) at_its_time(one.due, [&] { one.source->sample(*file_); });
  if (file_) file_->flush();
  cpu_ns_ = own_cpu_ns();
  return next;
}

void Lane::take_groups() {
  std::optional<std::vector<Group>> groups;
  {
    const std::lock_guard lock(mutex_);
    groups.swap(handed_);
  }
  if (!groups) return;
  for (const Running& one : sources_) one.source->follow(*groups);
}

bool Lane::ends_before(std::int64_t next_ns) {
  std::unique_lock lock(mutex_);
  if (sources_.empty() && chores_.empty()) return true;  // nothing will ever be due
  const auto pause = std::chrono::nanoseconds(std::max<std::int64_t>(0, next_ns - monotonic_ns()));
  return changed_.wait_for(lock, pause, [&] { return ends_; });
}

void Lane::tell(bool& state) {
  const std::lock_guard lock(mutex_);
  state = true;
  if (ended_ && is_left_) left_behind--;
  changed_.notify_all();
}

bool Lane::is_open_by(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [&] { return is_open_; });
}

std::vector<Absent> Lane::absent() const {
  const std::lock_guard lock(mutex_);
  return absent_;
}

void Lane::follow(std::vector<Group> groups) {
  const std::lock_guard lock(mutex_);
  handed_ = std::move(groups);
}

void Lane::end() {
  const std::lock_guard lock(mutex_);
  ends_ = true;
  changed_.notify_all();
}

bool Lane::leave_by(Clock::time_point until) {
  if (!thread_.joinable()) return true;
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, until, [&] { return ended_; })) {
    lock.unlock();
    thread_.join();
    return true;
  }
  static const int registered = on_exit(leave_at_once, nullptr);
  (void)registered;
  is_left_ = true;
  left_behind++;
  thread_.detach();
  return false;
}

}  // namespace stepscope::collect::telemetry
