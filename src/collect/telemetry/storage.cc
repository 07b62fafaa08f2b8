// Network file systems, which block devices know nothing of: NFS by mount, and Lustre by file system where its
// statistics may be read (as `lctl get_param llite.*.stats` tells them). A mount that vanishes has no more samples.
#include <array>
#include <filesystem>
#include <map>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"
#include "collect/telemetry/lines.h"
#include "collect/telemetry/nfs_mounts.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

struct Counted {
  const char *key, *name, *unit, *meaning;
  bool is_sum;  // of bytes; else how often
};
constexpr std::array<Counted, 5> kCounted{{
    {"read_bytes", "read", "bytes", "Bytes that programs read from Lustre, caches and all", true},
    {"write_bytes", "written", "bytes", "Bytes that programs wrote to Lustre", true},
    {"read_bytes", "reads", "count", "System calls that read from Lustre", false},
    {"write_bytes", "writes", "count", "System calls that wrote to Lustre", false},
    {"open", "opens", "count", "Files of Lustre that were opened", false},
}};

class LustreClient {
 public:
  LustreClient(KeptFile file, const std::string& target) : file_(std::move(file)) {
    for (const Counted& one : kCounted) {
      series_.emplace_back(
          run::SeriesAbout{"storage", one.name, target, one.unit, run::SeriesKind::counter, one.meaning});
    }
  }

  bool is_there() { return !file_.read().empty(); }
  const std::string& path() const { return file_.path(); }
  // Mounted anew, and counts from 0.
  void read_from(KeptFile file) {
    file_ = std::move(file);
    for (Growth& one : series_) one.begin_anew();
  }

  // "read_bytes 12 samples [bytes] 1 4096 9000": how often, the least, the most and the sum. What has not happened yet
  // has no line.
  void sample(Sink& sink) {
    std::string_view text = file_.read();
    while (!text.empty()) {
      std::string_view line = next_line(text);
      const std::string_view key = next_word(line);
      std::size_t at = 0;
      const auto times = next_number(line, at);
      if (!times) continue;
      line.remove_prefix(at);
      if (next_word(line) != "samples") continue;
      const bool is_bytes = next_word(line) == "[bytes]";
      for (int i = 0; i < 2; i++) next_word(line);
      const auto sum = is_bytes ? first_number(line) : std::nullopt;
      for (std::size_t i = 0; i < kCounted.size(); i++) {
        if (key != kCounted[i].key) continue;
        const auto& value = kCounted[i].is_sum ? sum : times;
        if (value) series_[i].add_seldom(sink, *value);
      }
    }
  }

 private:
  KeptFile file_;
  std::vector<Growth> series_;
};

class Storage : public Source {
 public:
  explicit Storage(const Roots& roots) : roots_(roots), nfs_(roots.proc + "/self/mountstats") { look(); }

  bool is_any() { return !lustre_.empty() || nfs_.has("nfs"); }
  bool has_lustre() { return nfs_.has("lustre"); }

  void follow(const std::vector<Group>& groups) override {
    std::string pid = "self";
    if (!groups.empty() && !groups.front().members.empty()) pid = std::to_string(groups.front().members.front().pid);
    if (pid == pid_) return;
    pid_ = pid;
    nfs_.open(roots_.proc + "/" + pid + "/mountstats");
  }

  void sample(Sink& sink) override {
    constexpr int kSamplesBetweenLooks = 20;
    nfs_.sample(sink);
    if (++samples_ % kSamplesBetweenLooks == 0) look();
    for (auto& [target, client] : lustre_) client.sample(sink);
  }

 private:
  void look() {
    for (const std::string& folder : {roots_.sys + "/kernel/debug/lustre/llite", roots_.proc + "/fs/lustre/llite"}) {
      std::error_code code;
      for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
        watch(entry->path().string() + "/stats", entry->path().filename().string());
      }
    }
  }

  // Folders are FILESYSTEM-ADDRESS, of which the second differs after each mount. One that is mounted again goes on as
  // the same; one that is mounted twice is two.
  void watch(const std::string& path, const std::string& folder) {
    constexpr int kMostClients = 64;
    for (const auto& [target, client] : lustre_) {
      if (client.path() == path) return;
    }
    KeptFile file(path);
    if (file.read().empty()) return;
    const std::string name = "lustre " + folder.substr(0, folder.rfind('-'));
    for (int i = 1; i <= kMostClients; i++) {
      const std::string target = i == 1 ? name : name + " (" + std::to_string(i) + ")";
      const auto known = lustre_.find(target);
      if (known != lustre_.end() && known->second.is_there()) continue;
      if (known != lustre_.end()) {
        known->second.read_from(std::move(file));
      } else if (lustre_.size() < kMostClients) {
        lustre_.try_emplace(target, LustreClient(std::move(file), target));
      }
      return;
    }
  }

  Roots roots_;
  std::string pid_ = "self";
  NfsMounts nfs_;
  std::map<std::string, LustreClient> lustre_;  // by target
  int samples_ = 0;
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  auto storage = std::make_unique<Storage>(roots);
  if (!storage->is_any() && storage->has_lustre()) {
    return fail({ErrorKind::unreadable, "only root may read what goes through Lustre here",
                 roots.sys + "/kernel/debug/lustre", std::nullopt,
                 "Run as root, with debugfs mounted at /sys/kernel/debug"});
  }
  if (!storage->is_any()) {
    return fail({ErrorKind::unsupported, "no NFS or Lustre file system is mounted here",
                 roots.proc + "/self/mountstats", std::nullopt,
                 "Look at the collector io for the files of other file systems"});
  }
  return storage;
}

}  // namespace

Collector storage_collector() { return {"storage", "what goes through each NFS mount and Lustre", 500, open}; }

}  // namespace stepscope::collect::telemetry
