// What goes over the network interfaces that the ranks see, which in a container are not the machine's: read in the
// name space of the first rank. The loopback is left out, for what goes over it does not leave the machine, unless it
// is all that there is; so are the machine's ends of other containers' links.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"
#include "collect/telemetry/lines.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

constexpr std::size_t kMostInterfaces = 32;

struct Counted {
  std::size_t column;  // of /proc/net/dev
  const char *name, *unit, *meaning;
  bool is_rare;
};
constexpr std::array<Counted, 8> kCounted{{
    {0, "received", "bytes", "Bytes that the interface received", false},
    {8, "sent", "bytes", "Bytes that the interface sent", false},
    {1, "received_packets", "count", "Packets that the interface received", false},
    {9, "sent_packets", "count", "Packets that the interface sent", false},
    {2, "receive_errors", "count", "Packets that came damaged", true},
    {10, "send_errors", "count", "Packets that could not be sent", true},
    {3, "receive_drops", "count", "Packets that came and had no room", true},
    {11, "send_drops", "count", "Packets to be sent that had no room", true},
}};
constexpr std::size_t kColumns = 16;

bool is_loopback(std::string_view name) { return name == "lo"; }

bool is_end_of_other(std::string_view name) {
  return name.starts_with("veth") || name.starts_with("cali") || name.starts_with("lxc");
}

using Row = std::array<std::int64_t, kColumns>;

// "  eth0: 1 2 …", of which old kernels leave no blank behind the colon.
bool read_row(std::string_view line, std::string_view& name, Row& row) {
  const std::size_t colon = line.rfind(':');  // aliases have one in their name
  const std::size_t begin = line.find_first_not_of(' ');
  if (colon == line.npos || begin >= colon) return false;
  name = line.substr(begin, colon - begin);
  std::size_t at = colon + 1;
  for (std::int64_t& value : row) {
    const auto number = next_number(line, at);
    if (!number) return false;
    value = *number;
  }
  return true;
}

class Interface {
 public:
  explicit Interface(const std::string& name) {
    series_.reserve(kCounted.size());
    for (const Counted& one : kCounted) {
      series_.emplace_back(
          run::SeriesAbout{"network", one.name, name, one.unit, run::SeriesKind::counter, one.meaning});
    }
  }

  void add(Sink& sink, const Row& row) {
    for (std::size_t i = 0; i < kCounted.size(); i++) {
      const std::int64_t count = row[kCounted[i].column];
      kCounted[i].is_rare ? series_[i].add_seldom(sink, count) : series_[i].add(sink, count);
    }
  }

  void begin_anew() {
    for (Growth& one : series_) one.begin_anew();
  }

 private:
  std::vector<Growth> series_;
};

class Network : public Source {
 public:
  explicit Network(const Roots& roots) : roots_(roots), dev_(path("self", "dev")), snmp_(path("self", "snmp")) {
    space_ = space_of("self");
  }

  bool is_any() {
    std::size_t rows = 0;
    for_each_line(dev_, [&](std::string_view line) {
      std::string_view name;
      Row row;
      rows += read_row(line, name, row) ? 1 : 0;
    });
    return rows > 0;
  }

  void follow(const std::vector<Group>& groups) override {
    std::string pid = "self";
    if (!groups.empty() && !groups.front().members.empty()) pid = std::to_string(groups.front().members.front().pid);
    if (pid == pid_) return;
    KeptFile dev(path(pid, "dev"));
    if (!dev.is_open()) return;  // it has ended already, and its name space says all still
    const std::string space = space_of(pid);
    const bool is_same = !space.empty() && space == space_;
    pid_ = pid;
    space_ = space;
    if (is_same) return;
    dev_ = std::move(dev);
    snmp_ = KeptFile(path(pid, "snmp"));
    for (auto& [name, interface] : interfaces_) interface.begin_anew();
    retransmitted_.begin_anew();
    segments_.at_once();
  }

  void sample(Sink& sink) override {
    sample_interfaces(sink);
    if (segments_.now()) sample_segments(sink);
  }

 private:
  std::string path(const std::string& pid, const char* file) const { return roots_.proc + "/" + pid + "/net/" + file; }

  // "net:[4026531840]"; empty: it may not be read.
  std::string space_of(const std::string& pid) const {
    std::error_code code;
    return std::filesystem::read_symlink(roots_.proc + "/" + pid + "/ns/net", code).string();
  }

  void sample_interfaces(Sink& sink) {
    std::optional<Row> loopback;
    bool is_any = false;
    for_each_line(dev_, [&](std::string_view line) {
      std::string_view name;
      Row row;
      if (!read_row(line, name, row)) return;
      if (is_loopback(name)) loopback = row;
      if (is_loopback(name) || is_end_of_other(name)) return;
      is_any = true;
      add(sink, name, row);
    });
    if (!is_any && loopback) add(sink, "lo", *loopback);
  }

  // One that has never moved a byte has no series.
  void add(Sink& sink, std::string_view name, const Row& row) {
    auto known = interfaces_.find(name);
    if (known == interfaces_.end()) {
      if (interfaces_.size() == kMostInterfaces || (row[0] == 0 && row[8] == 0)) return;
      const std::string target(name);
      known = interfaces_.try_emplace(target, target).first;
    }
    known->second.add(sink, row);
  }

  // Two lines begin with "Tcp:", the names and then the numbers. The kernel adds up all protocols over all cores for
  // this file, which takes longer than all others of a rank together.
  void sample_segments(Sink& sink) {
    std::string_view text = snmp_.read();
    std::size_t column = 0, found = 0;
    while (!text.empty()) {
      std::string_view line = next_line(text);
      if (next_word(line) != "Tcp:") continue;
      std::size_t at = 0;
      for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
        at++;
        if (word == "RetransSegs") column = at;
        if (found == 0 || at != column) continue;
        if (const auto number = first_number(word)) retransmitted_.add(sink, *number);
      }
      found++;
    }
  }

  Roots roots_;
  std::string pid_ = "self", space_;
  KeptFile dev_, snmp_;
  Seldom segments_;
  std::map<std::string, Interface, std::less<>> interfaces_;
  Growth retransmitted_{{"network", "tcp_retransmitted", "host", "count", run::SeriesKind::counter,
                         "TCP segments that were sent again, of all interfaces that the first rank sees"}};
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  auto network = std::make_unique<Network>(roots);
  if (!network->is_any()) {
    return fail({ErrorKind::unsupported, "no network interface can be read", roots.proc + "/self/net/dev", std::nullopt,
                 "Start with a network, or with proc mounted"});
  }
  return network;
}

}  // namespace

Collector network_collector() {
  return {"network", "bytes, packets, drops and errors of each network interface, TCP retransmissions", 100, open};
}

}  // namespace stepscope::collect::telemetry
