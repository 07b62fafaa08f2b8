#include "collect/telemetry/nfs_mounts.h"

#include <array>

#include "collect/telemetry/lines.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

struct Counted {
  const char *name, *unit, *meaning;
  std::int64_t scale;
};
enum : std::size_t { kRead, kWritten, kFromServer, kToServer, kReads, kReadTime, kWrites, kWriteTime };
constexpr std::array<Counted, 8> kCounted{{
    {"read", "bytes", "Bytes that programs read from the mount, caches and all", 1},
    {"written", "bytes", "Bytes that programs wrote to the mount", 1},
    {"read_from_server", "bytes", "Bytes that the server had to send", 1},
    {"written_to_server", "bytes", "Bytes that went to the server", 1},
    {"read_requests", "count", "Requests to read that went to the server", 1},
    {"read_request_time", "ns", "Time of all requests to read, from first to last step, side by side ones each",
     1'000'000},
    {"write_requests", "count", "Requests to write that went to the server", 1},
    {"write_request_time", "ns", "Time of all requests to write, from first to last step, side by side ones each",
     1'000'000},
}};

// "device server:/data mounted on /mnt with fstype nfs4 statvers=1.1"
struct Heading {
  std::string_view device, folder, type;
};

bool read_heading(std::string_view line, Heading& heading) {
  if (next_word(line) != "device") return false;
  heading.device = next_word(line);
  if (next_word(line) != "mounted" || next_word(line) != "on") return false;
  heading.folder = next_word(line);
  if (next_word(line) != "with" || next_word(line) != "fstype") return false;
  heading.type = next_word(line);
  return !heading.type.empty();
}

bool is_of(std::string_view type, std::string_view wanted) {
  return type == wanted || (wanted == "nfs" && type == "nfs4");
}

}  // namespace

void NfsMounts::open(const std::string& mountstats) {
  KeptFile file(mountstats);
  if (file.is_open()) file_ = std::move(file);  // else it has ended, and the mounts that we have go on
}

bool NfsMounts::has(std::string_view type) {
  bool found = false;
  for_each_line(file_, [&](std::string_view line) {
    Heading heading;
    found = found || (read_heading(line, heading) && is_of(heading.type, type));
  });
  return found;
}

NfsMounts::Mount* NfsMounts::mount(std::string_view device, std::string_view folder) {
  auto known = mounts_.find(folder);
  if (known == mounts_.end()) {
    if (mounts_.size() == kMostMounts) return nullptr;
    known = mounts_.try_emplace(std::string(folder)).first;
    const std::string target = unescaped(folder);
    for (const Counted& one : kCounted) {
      known->second.series.emplace_back(
          run::SeriesAbout{"storage", one.name, target, one.unit, run::SeriesKind::counter, one.meaning},
          Counting{one.scale, 0, 0});
    }
  }
  Mount& mount = known->second;
  if (mount.device != device) {
    mount.device = device;
    for (Growth& one : mount.series) one.begin_anew();
  }
  if (mount.round == round_) return nullptr;  // mounted over, and told already
  mount.round = round_;
  return &mount;
}

void NfsMounts::add_bytes(Mount& mount, std::string_view numbers, Sink& sink) {
  std::array<std::int64_t, 6> bytes{};  // read, written; by O_DIRECT; from and to the server
  std::size_t at = 0;
  for (std::int64_t& one : bytes) {
    const auto number = next_number(numbers, at);
    if (!number) return;
    one = *number;
  }
  for (const std::size_t i : {kRead, kWritten}) {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(bytes[i], bytes[i + 2], &sum)) mount.series[i].add_seldom(sink, sum);
  }
  mount.series[kFromServer].add_seldom(sink, bytes[4]);
  mount.series[kToServer].add_seldom(sink, bytes[5]);
}

// Requests, transmissions, timeouts, bytes sent, bytes received; ms in the queue, on the way, and in all.
void NfsMounts::add_requests(Mount& mount, std::size_t first, std::string_view numbers, Sink& sink) {
  std::array<std::int64_t, 8> all{};
  std::size_t at = 0;
  for (std::int64_t& one : all) {
    const auto number = next_number(numbers, at);
    if (!number) return;
    one = *number;
  }
  mount.series[first].add_seldom(sink, all[0]);
  mount.series[first + 1].add_seldom(sink, all[7]);
}

void NfsMounts::sample(Sink& sink) {
  round_++;
  Mount* current = nullptr;
  for_each_line(file_, [&](std::string_view line) {
    Heading heading;
    if (!line.starts_with('\t')) {
      current = nullptr;
      if (read_heading(line, heading) && is_of(heading.type, "nfs")) current = mount(heading.device, heading.folder);
      return;
    }
    if (current == nullptr) return;
    const std::string_view word = next_word(line);
    if (word == "bytes:") {
      add_bytes(*current, line, sink);
    } else if (word == "READ:") {
      add_requests(*current, kReads, line, sink);
    } else if (word == "WRITE:") {
      add_requests(*current, kWrites, line, sink);
    }
  });
}

}  // namespace stepscope::collect::telemetry
