#include "session/cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/checksum.h"
#include "base/version.h"
#include "session/trace_archive.h"

namespace stepscope::session {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kSchemaVersion = 3;
constexpr char kMagic[8] = {'s', 't', 'e', 'p', 'c', 'a', 'c', 'h'};
constexpr std::uint64_t kDefaultMaxMb = 4096;
constexpr std::size_t kSamples = 32, kSampleBytes = 4096;

// In front of the archive. The archive starts at 64 bytes, so that its alignment holds.
struct alignas(64) Header {
  char magic[8];
  std::uint32_t schema_version;
  std::uint32_t header_bytes;
  std::uint64_t archive_bytes;
  std::uint64_t checksum;      // of the archive
  std::uint64_t key_checksum;  // of the whole key: file names are only a part of it
};

struct File {
  int fd;
  explicit File(int descriptor) : fd(descriptor) {}
  ~File() {
    if (fd >= 0) close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

std::uint64_t hash_of(std::string_view text, std::uint64_t seed) {
  Checksum sum(seed);
  sum.add(text.data(), text.size());
  return sum.value();
}

std::string hex(std::uint64_t value) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[value >> shift & 15];
  return text;
}

// Blocks spread over the file: a file that was rewritten in place with the same size and time is noticed.
std::uint64_t sampled_hash(int fd, std::uint64_t size) {
  Checksum sum(0);
  std::vector<char> block(kSampleBytes);
  for (std::size_t i = 0; i < kSamples; i++) {
    const std::uint64_t last = size > kSampleBytes ? size - kSampleBytes : 0;
    const ssize_t got = pread(fd, block.data(), block.size(), static_cast<off_t>(last / (kSamples - 1) * i));
    if (got > 0) sum.add(block.data(), static_cast<std::size_t>(got));
  }
  return sum.value();
}

struct Target {
  int fd;
  Checksum sum{0};
  std::uint64_t bytes = 0;
  std::vector<char> pending;
  static constexpr std::size_t kPending = 1 << 20;

  bool write_all(const char* data, std::size_t size) const {
    for (std::size_t done = 0; done < size;) {
      const ssize_t n = write(fd, data + done, size - done);
      if (n <= 0) return false;
      done += static_cast<std::size_t>(n);
    }
    return true;
  }
  bool flush() {
    const bool written = write_all(pending.data(), pending.size());
    pending.clear();
    return written;
  }
};

bool put(void* target, const void* bytes, std::size_t size) {
  auto& to = *static_cast<Target*>(target);
  to.sum.add(bytes, size);
  to.bytes += size;
  const char* data = static_cast<const char*>(bytes);
  if (size >= Target::kPending) return to.flush() && to.write_all(data, size);
  to.pending.insert(to.pending.end(), data, data + size);
  return to.pending.size() < Target::kPending || to.flush();
}

}  // namespace

Cache Cache::from_environment(bool enabled) {
  Cache cache;
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const std::string chosen = variable("STEPSCOPE_CACHE");
  if (!enabled || chosen == "off" || chosen == "0") return cache;
  if (!chosen.empty()) {
    cache.folder_ = chosen;
  } else if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) {
    cache.folder_ = xdg + "/stepscope";
  } else if (const std::string home = variable("HOME"); !home.empty()) {
    cache.folder_ = home + "/.cache/stepscope";
  }
  const std::string limit = variable("STEPSCOPE_CACHE_MAX_MB");
  cache.max_bytes_ = (limit.empty() ? kDefaultMaxMb : std::strtoull(limit.c_str(), nullptr, 10)) << 20;
  return cache;
}

std::string Cache::key(const std::string& path, const std::string& rules) const {
  std::error_code error;
  const std::string full = fs::weakly_canonical(path, error).string();
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (error || file.fd < 0 || fstat(file.fd, &info) != 0) return "";
  std::string key = full;
  for (const std::uint64_t part :
       {std::uint64_t{info.st_dev}, std::uint64_t{info.st_ino}, static_cast<std::uint64_t>(info.st_size),
        static_cast<std::uint64_t>(info.st_mtim.tv_sec), static_cast<std::uint64_t>(info.st_mtim.tv_nsec),
        sampled_hash(file.fd, static_cast<std::uint64_t>(info.st_size)), hash_of(rules, 1),
        std::uint64_t{kSchemaVersion}, std::uint64_t{sizeof(Trace)}}) {
    key += '\n' + hex(part);
  }
  return key + '\n' + std::string(version()) + '\n' + std::string(source_id());
}

std::string Cache::path_of(const std::string& key) const { return folder_ + "/" + hex(hash_of(key, 2)) + ".trace"; }

std::optional<Trace> Cache::load(const std::string& key) const {
  if (!enabled() || key.empty()) return std::nullopt;
  const std::string path = path_of(key);
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (file.fd < 0 || fstat(file.fd, &info) != 0 || info.st_uid != geteuid()) return std::nullopt;
  const auto size = static_cast<std::size_t>(info.st_size);
  void* mapped =
      size > sizeof(Header) ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file.fd, 0) : MAP_FAILED;
  std::optional<Trace> trace;
  if (mapped != MAP_FAILED) {
    const std::shared_ptr<const void> owner(mapped, [size](const void* p) { munmap(const_cast<void*>(p), size); });
    Header header;
    std::memcpy(&header, mapped, sizeof header);
    const std::byte* archive = static_cast<const std::byte*>(mapped) + sizeof header;
    Checksum sum(0);
    sum.add(archive, size - sizeof header);
    const bool whole = std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 &&
                       header.schema_version == kSchemaVersion && header.archive_bytes == size - sizeof header &&
                       header.key_checksum == hash_of(key, 3) && header.checksum == sum.value();
    if (whole) trace = read_archive({archive, size - sizeof header}, owner);
  }
  if (!trace) {
    unlink(path.c_str());
    return std::nullopt;
  }
  trace->source.cached = true;
  futimens(file.fd, nullptr);  // used now: the last to be evicted
  return trace;
}

void Cache::store(const std::string& key, const Trace& trace) const {
  if (!enabled() || key.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  const std::string path = path_of(key);
  const std::string partial = path + "." + std::to_string(getpid()) + ".partial";
  {
    const File file(open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (file.fd < 0) return;
    Header header{};
    Target target{.fd = file.fd};
    bool whole = write(file.fd, &header, sizeof header) == sizeof header;
    whole = whole && write_archive(trace, put, &target) && target.flush();
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.schema_version = kSchemaVersion;
    header.header_bytes = sizeof header;
    header.archive_bytes = target.bytes;
    header.checksum = target.sum.value();
    header.key_checksum = hash_of(key, 3);
    whole = whole && pwrite(file.fd, &header, sizeof header, 0) == sizeof header;
    if (!whole || rename(partial.c_str(), path.c_str()) != 0) unlink(partial.c_str());
  }
  evict();
}

void Cache::evict() const {
  struct Entry {
    std::string path;
    std::uint64_t bytes;
    fs::file_time_type used;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code error;
  for (const auto& each : fs::directory_iterator(folder_, error)) {
    if (each.path().extension() != ".trace" && each.path().extension() != ".partial") continue;
    std::error_code ignored;
    entries.push_back({each.path().string(), each.file_size(ignored), each.last_write_time(ignored)});
    total += entries.back().bytes;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= max_bytes_) return;
    unlink(entry.path.c_str());
    total -= entry.bytes;
  }
}

}  // namespace stepscope::session
