#include "collect/telemetry/sample_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "run/json_text.h"
#include "run/living.h"
#include "run/manifest.h"

namespace stepscope::collect::telemetry {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kChunkBytes = 1 << 20;  // by which the file grows

std::int64_t now_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Error not_made(const std::string& path, int reason) {
  return {ErrorKind::unreadable, std::string("cannot be written: ") + std::strerror(reason), path, std::nullopt,
          "Make room there, or choose another folder with --out DIR"};
}

}  // namespace

double Newest::value() const {
  const bool is_counter = about.kind == run::SeriesKind::counter;
  return is_counter ? static_cast<double>(static_cast<std::int64_t>(bits)) : std::bit_cast<double>(bits);
}

std::int64_t monotonic_ns() { return now_ns(CLOCK_MONOTONIC); }

Result<SampleFile> SampleFile::create(const std::string& run_folder, std::uint64_t most_bytes) {
  std::error_code code;
  const fs::path folder = fs::path(run_folder) / "telemetry";
  fs::create_directories(folder, code);
  if (code) return fail(not_made(folder.string(), code.value()));
  SampleFile out;
  out.path_ = (folder / (run::host_in_names() + "_" + std::to_string(getpid()) + ".samples")).string();
  out.file_ = open(out.path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (out.file_ < 0) return fail(not_made(out.path_, errno));
  out.most_bytes_ = std::max<std::uint64_t>(most_bytes, run::kRingHeadBytes + run::kSamplesFormat.record_bytes);
  if (const int reason = out.grow(); reason != 0) {
    unlink(out.path_.c_str());
    return fail(not_made(out.path_, reason));
  }
  const std::string words = run::series_file_of(out.path_);
  out.words_ = open(words.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (out.words_ < 0) return fail(not_made(words, errno));
  const std::string about = "{\"host\": " + run::json_string(run::host_name()) +
                            ", \"pid\": " + std::to_string(getpid()) +
                            ", \"started_unix_ns\": " + std::to_string(run::unix_now_ns()) + "}";
  run::RingHead head{{},
                     run::kSamplesFormat.version,
                     run::kRingHeadBytes,
                     run::kSamplesFormat.record_bytes,
                     static_cast<std::uint32_t>(about.size()),
                     out.records_};
  std::memcpy(head.magic, run::kSamplesFormat.magic.data(), sizeof head.magic);
  out.write_at(run::kRingAboutAt, about.data(), about.size());
  out.write_at(0, &head, sizeof head);
  out.clock();
  out.flush();
  if (out.failed_ != 0) return fail(not_made(out.path_, out.failed_));
  return out;
}

int SampleFile::grow() {
  const std::uint64_t wanted = std::min(most_bytes_, bytes_ + kChunkBytes);
  const int reason = wanted > bytes_ ? posix_fallocate(file_, 0, static_cast<off_t>(wanted)) : ENOSPC;
  grows_ = reason == 0;
  if (!grows_) return reason;
  bytes_ = wanted;
  records_ = (bytes_ - run::kRingHeadBytes) / run::kSamplesFormat.record_bytes;
  return 0;
}

SampleFile::SampleFile(SampleFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      words_(std::exchange(other.words_, -1)),
      most_bytes_(other.most_bytes_),
      bytes_(other.bytes_),
      records_(other.records_),
      written_(other.written_),
      pending_(std::move(other.pending_)),
      grows_(other.grows_),
      failed_(other.failed_),
      known_(std::move(other.known_)),
      names_(std::move(other.names_)),
      newest_(std::move(other.newest_)) {}

SampleFile::~SampleFile() { close(); }

void SampleFile::close() {
  const std::lock_guard lock(mutex_);
  write_pending();
  if (file_ >= 0) ::close(std::exchange(file_, -1));
  if (words_ >= 0) ::close(std::exchange(words_, -1));
}

std::uint64_t SampleFile::written() const {
  const std::lock_guard lock(mutex_);
  return written_ + pending_.size();
}

std::string SampleFile::problem() const {
  const std::lock_guard lock(mutex_);
  return failed_ == 0 ? "" : "telemetry ended early: " + path_ + " cannot be written: " + std::strerror(failed_);
}

std::vector<Newest> SampleFile::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

std::uint32_t SampleFile::series(const run::SeriesAbout& about) {
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] =
      known_.try_emplace({about.name, about.target}, static_cast<std::uint32_t>(known_.size() + 1));
  if (is_new) {
    run::SeriesAbout& told = newest_.emplace_back(Newest{about}).about;
    if (const auto name = names_.find(about.target); name != names_.end()) told.target = name->second;
    describe(known->second);
  }
  return known->second;
}

void SampleFile::rename(const std::string& target, const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::string& now = names_.try_emplace(target, target).first->second;
  if (now == name) return;
  now = name;
  for (const auto& [known, number] : known_) {
    if (known.second != target) continue;
    newest_[number - 1].about.target = name;
    describe(number);
  }
}

// The newest line of a number counts. One write: whole or not at all, and then its samples are of an unknown series.
void SampleFile::describe(std::uint32_t number) {
  const std::string line = run::to_json_line(number, newest_[number - 1].about);
  if (words_ >= 0 && write(words_, line.data(), line.size()) < 0) failed_ = errno;
}

void SampleFile::add(std::uint32_t series, std::int64_t count) {
  put(series, static_cast<std::uint64_t>(count), monotonic_ns());
}

void SampleFile::add(std::uint32_t series, double level) {
  put(series, std::bit_cast<std::uint64_t>(level), monotonic_ns());
}

void SampleFile::clock() {
  const std::int64_t before = monotonic_ns();
  const auto unix_ns = static_cast<std::uint64_t>(now_ns(CLOCK_REALTIME));
  put(run::kClockSeries, unix_ns, before + (monotonic_ns() - before) / 2);
}

void SampleFile::put(std::uint32_t series, std::uint64_t value, std::int64_t time_ns) {
  const std::lock_guard lock(mutex_);
  if (file_ < 0 || failed_ != 0) return;
  if (series > 0 && series <= newest_.size()) {
    newest_[series - 1].monotonic_ns = time_ns;
    newest_[series - 1].bits = value;
  }
  pending_.push_back({time_ns, value, series, 0});
  if (pending_.size() == run::kSamplesFormat.in_flight) write_pending();
}

void SampleFile::flush() {
  const std::lock_guard lock(mutex_);
  write_pending();
}

void SampleFile::write_at(std::uint64_t place, const void* bytes, std::size_t many) {
  if (failed_ == 0 && pwrite(file_, bytes, many, static_cast<off_t>(place)) != static_cast<ssize_t>(many)) {
    failed_ = errno != 0 ? errno : EIO;
  }
}

// The records first, then how many there are.
void SampleFile::write_pending() {
  if (file_ < 0 || failed_ != 0 || pending_.empty()) return;
  for (std::size_t done = 0; done < pending_.size();) {
    if (written_ == records_ && grows_ && grow() == 0) {  // nothing has gone round yet: all places stay
      write_at(offsetof(run::RingHead, records), &records_, sizeof records_);
    }
    const std::uint64_t place = written_ % records_;
    const std::size_t many = std::min<std::uint64_t>(pending_.size() - done, records_ - place);
    write_at(run::kRingHeadBytes + place * sizeof(run::SampleRecord), &pending_[done],
             many * sizeof(run::SampleRecord));
    done += many;
    written_ += many;
  }
  pending_.clear();
  write_at(run::kRingWrittenAt, &written_, sizeof written_);
}

}  // namespace stepscope::collect::telemetry
