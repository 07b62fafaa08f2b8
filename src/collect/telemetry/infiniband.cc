// InfiniBand, RoCE and EFA ports: what they moved, and what slowed them down. Each file is a question to the adapter's
// firmware and costs tens of microseconds, so only the bytes are read at each sample; the rest once in a while.
//
// Ports differ in what they have: EFA and some RoCE adapters count bytes in hw_counters and have no counters folder,
// others count words of 4 bytes; a file that answers with an error is left out, not its port.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostPorts = 128;

struct Counted {
  const char *name, *unit, *meaning;
  std::array<const char*, 3> files;  // the first that answers counts
  std::int64_t scale = 1;
};

// Of all ports; files of words first.
constexpr std::array<Counted, 2> kBytes{{
    {"received", "bytes", "Bytes that the port received", {"counters/port_rcv_data"}, 4},
    {"sent", "bytes", "Bytes that the port sent", {"counters/port_xmit_data"}, 4},
}};
// Kernels before 4.5 have the wide counters apart, and those above stop at 32 bits.
constexpr std::array<const char*, 2> kOldBytes{"counters_ext/port_rcv_data_64", "counters_ext/port_xmit_data_64"};
constexpr std::array<const char*, 2> kPlainBytes{"hw_counters/rx_bytes", "hw_counters/tx_bytes"};

constexpr std::array<Counted, 16> kOthers{{
    {"rdma_read", "bytes", "Bytes that the port fetched by RDMA", {"hw_counters/rdma_read_bytes"}},
    {"rdma_written", "bytes", "Bytes that the port wrote to other machines by RDMA", {"hw_counters/rdma_write_bytes"}},
    {"send_wait",
     "count",
     "Ticks of the port in which it had data to send and was not let",
     {"counters/port_xmit_wait"}},
    {"send_discards", "count", "Packets that the port could not send and gave up", {"counters/port_xmit_discards"}},
    {"receive_errors", "count", "Packets that came damaged", {"counters/port_rcv_errors"}},
    {"symbol_errors", "count", "Small errors on the link", {"counters/symbol_error"}},
    {"link_downed", "count", "Times that the link broke down", {"counters/link_downed"}},
    {"congestion_notices_sent",
     "count",
     "Notices to senders that they congest (CNP)",
     {"hw_counters/np_cnp_sent", "hw_counters/tx_cnp_pkts"}},
    {"congestion_notices_handled",
     "count",
     "Notices of congestion (CNP) for which the port slowed down",
     {"hw_counters/rp_cnp_handled", "hw_counters/rx_cnp_pkts"}},
    {"congestion_marks",
     "count",
     "RoCE packets that switches had marked as congesting (ECN)",
     {"hw_counters/np_ecn_marked_roce_packets", "hw_counters/rx_ecn_marked_pkts"}},
    {"out_of_sequence", "count", "Packets that came out of their order", {"hw_counters/out_of_sequence"}},
    {"sequence_errors", "count", "Answers that packets were missing", {"hw_counters/packet_seq_err"}},
    {"ack_timeouts", "count", "Sends whose answer did not come in time", {"hw_counters/local_ack_timeout_err"}},
    {"not_ready_retries", "count", "Sends that the receiver was not ready for", {"hw_counters/rnr_nak_retry_err"}},
    {"adaptive_retransmissions", "count", "Sends again by the adapter's own timing", {"hw_counters/roce_adp_retrans"}},
    {"receive_drops", "count", "Packets that came and had no room", {"hw_counters/rx_drops"}},
}};

// A counter of a port, with the file that answers for it.
class PortCounter {
 public:
  PortCounter(const std::string& file, const Counted& about, const std::string& target, std::int64_t scale)
      : file_(file),
        series_({"infiniband", about.name, target, about.unit, run::SeriesKind::counter, about.meaning},
                {scale, 0, 0}) {}

  bool answers() { return first_number(file_.read()).has_value(); }
  void add(Sink& sink) {
    if (const auto count = first_number(file_.read())) series_.add(sink, *count);
  }
  void open_again() { file_ = KeptFile(file_.path()); }

 private:
  KeptFile file_;
  Growth series_;
};

class Port {
 public:
  Port(const std::string& folder, const std::string& target)
      : state_(folder + "/state"),
        rate_(folder + "/rate"),
        state_series_({"infiniband", "link_state", target, "state", run::SeriesKind::gauge,
                       "1 down, 2 being set up, 3 ready, 4 active"}),
        rate_series_({"infiniband", "link_rate", target, "bytes/s", run::SeriesKind::gauge,
                      "What the link can move in each direction"}) {
    for (std::size_t i = 0; i < kBytes.size(); i++) {
      const Counted& about = kBytes[i];
      std::vector<std::pair<const char*, std::int64_t>> files{
          {kOldBytes[i], 4}, {about.files[0], 4}, {kPlainBytes[i], 1}};
      add_first(folder, about, target, files, bytes_);
    }
    for (const Counted& about : kOthers) {
      std::vector<std::pair<const char*, std::int64_t>> files;
      for (const char* file : about.files) {
        if (file != nullptr) files.emplace_back(file, about.scale);
      }
      add_first(folder, about, target, files, others_);
    }
  }

  // False: nothing can be read of it any more.
  bool sample(Sink& sink) {
    const bool is_whole = whole_.now();
    if (is_active_ || is_whole) {
      for (PortCounter& one : bytes_) one.add(sink);
    }
    if (!is_whole) return true;
    for (PortCounter& one : others_) one.add(sink);
    const auto state = first_number(state_.read());
    if (state) state_series_.add(sink, static_cast<double>(*state));
    is_active_ = state.value_or(kActive) == kActive;
    const auto rate = bytes_per_second(rate_.read());
    if (rate) rate_series_.add(sink, *rate);
    return state || rate || std::any_of(bytes_.begin(), bytes_.end(), [](PortCounter& one) { return one.answers(); });
  }

  void open_again() {
    for (auto* counters : {&bytes_, &others_}) {
      for (PortCounter& one : *counters) one.open_again();
    }
    state_ = KeptFile(state_.path());
    rate_ = KeptFile(rate_.path());
    whole_.at_once();
  }

 private:
  static void add_first(const std::string& folder, const Counted& about, const std::string& target,
                        const std::vector<std::pair<const char*, std::int64_t>>& files, std::vector<PortCounter>& to) {
    for (const auto& [file, scale] : files) {
      PortCounter counter(folder + "/" + file, about, target, scale);
      if (!counter.answers()) continue;
      to.push_back(std::move(counter));
      return;
    }
  }

  static constexpr std::int64_t kActive = 4;

  // "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)".
  static std::optional<double> bytes_per_second(std::string_view text) {
    double gigabits = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), gigabits);
    if (read.ec != std::errc() || !(gigabits > 0) || gigabits > 1e6) return std::nullopt;
    if (!std::string_view(read.ptr, text.data() + text.size()).starts_with(" Gb/sec")) return std::nullopt;
    return gigabits * 1e9 / 8;
  }

  std::vector<PortCounter> bytes_, others_;
  KeptFile state_, rate_;
  Level state_series_, rate_series_;
  Seldom whole_;
  bool is_active_ = true;  // one that is not moves nothing
};

class Infiniband : public Source {
 public:
  explicit Infiniband(const Roots& roots) : folder_(roots.sys + "/class/infiniband") { look(); }

  bool is_any() const { return !ports_.empty(); }

  void sample(Sink& sink) override {
    constexpr int kSamplesBetweenLooks = 100;
    if (++samples_ % kSamplesBetweenLooks == 0) look();
    for (auto& [target, port] : ports_) {
      if (!port.gone && !port.port.sample(sink)) port.gone = true;
    }
  }

 private:
  struct Known {
    Port port;
    bool gone = false;
  };

  // Adapters come and go; one that was gone is opened again, and its counters go on.
  void look() {
    std::error_code code;
    for (fs::directory_iterator device(folder_, code), end; !code && device != end; device.increment(code)) {
      std::error_code none;
      for (fs::directory_iterator port(device->path() / "ports", none); !none && port != end; port.increment(none)) {
        const std::string target = device->path().filename().string() + "/" + port->path().filename().string();
        const auto known = ports_.find(target);
        if (known == ports_.end()) {
          if (ports_.size() < kMostPorts) ports_.try_emplace(target, Known{Port(port->path().string(), target)});
        } else if (known->second.gone) {
          known->second.port.open_again();
          known->second.gone = false;
        }
      }
    }
  }

  std::string folder_;
  std::map<std::string, Known> ports_;
  int samples_ = 0;
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  auto infiniband = std::make_unique<Infiniband>(roots);
  if (!infiniband->is_any()) {
    return fail({ErrorKind::unsupported, "no InfiniBand, RoCE or EFA adapter is seen here",
                 roots.sys + "/class/infiniband", std::nullopt,
                 "Load the adapter's driver (in a container: mount /sys)"});
  }
  return infiniband;
}

}  // namespace

Collector infiniband_collector() {
  return {"infiniband", "bytes, congestion and link of each InfiniBand, RoCE or EFA port", 100, open};
}

}  // namespace stepscope::collect::telemetry
