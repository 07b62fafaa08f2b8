#include "collect/telemetry/bandwidth/uncore.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "collect/telemetry/bandwidth/perf_event.h"
#include "collect/telemetry/bandwidth/resctrl.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry::bandwidth {
namespace {

struct Told {
  const char *name, *meaning;
};
constexpr Told kRead{"memory_read", "Bytes that the memory controllers of the socket read"};
constexpr Told kWritten{"memory_written", "Bytes that the memory controllers of the socket wrote"};
constexpr Told kSent{"socket_link_sent", "Bytes of data that the socket sent to other sockets"};

// What a kind of device counts. `names` are events that the kernel describes; where it describes none, `words` say the
// event as the maker's list has it (perf's tables of events: pmu-events/arch of Linux).
struct Event {
  const char* devices;  // NAME or NAME_<number>; # stands for a number
  const Told* told;
  std::array<const char*, 3> names;
  const char* words;
  double bytes;  // of a count, where the kernel does not say it
};
constexpr std::array<Event, 11> kEvents{{
    {"uncore_imc", &kRead, {"cas_count_read", "data_reads", "data_read"}, nullptr, 0},
    {"uncore_imc", &kWritten, {"cas_count_write", "data_writes", "data_write"}, nullptr, 0},
    {"uncore_imc_free_running", &kRead, {"data_read", "read"}, nullptr, 0},
    {"uncore_imc_free_running", &kWritten, {"data_write", "write"}, nullptr, 0},
    {"amd_umc", &kRead, {}, "event=0x0a,rdwrmask=0x1", 64},         // umc_cas_cmd.rd of Zen 4 and 5, 64 bytes each
    {"amd_umc", &kWritten, {}, "event=0x0a,rdwrmask=0x2", 64},      // umc_cas_cmd.wr
    {"uncore_upi", &kSent, {}, "event=0x02,umask=0x0f", 64.0 / 9},  // UNC_UPI_TxL_FLITS.ALL_DATA: 9 flits are 64 bytes
    {"nvidia_scf_pmu", &kRead, {"cmem_rd_data"}, nullptr, 32},      // Grace: beats of 32 bytes
    {"nvidia_scf_pmu", &kWritten, {"cmem_wb_data"}, nullptr, 32},
    {"hisi_sccl#_ddrc#", &kRead, {"flux_rd"}, nullptr, 32},  // Kunpeng: bursts of 32 bytes
    {"hisi_sccl#_ddrc#", &kWritten, {"flux_wr"}, nullptr, 32},
}};

bool is_one_of(std::string_view device, std::string_view devices) {
  std::string_view rest = device;
  for (const char c : devices) {
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const std::size_t many = c == '#' ? digits : rest.starts_with(c) ? 1 : 0;
    if (many == 0) return false;
    rest.remove_prefix(many);
  }
  return rest.empty() || (rest.size() > 1 && rest[0] == '_' && rest.find_first_not_of("0123456789", 1) == rest.npos);
}

struct Wanted {
  EventCode code;
  double bytes;
};

std::optional<Wanted> wanted_of(const std::string& device, const Event& event) {
  for (const char* name : event.names) {
    if (name == nullptr) continue;
    const std::string words(KeptFile(device + "/events/" + name).read());
    const auto code = event_code(device, words);
    const double bytes = bytes_per_count(device, name).value_or(event.bytes);
    if (code && bytes > 0) return Wanted{*code, bytes};
  }
  if (event.words == nullptr) return std::nullopt;
  const auto code = event_code(device, event.words);
  return code ? std::optional(Wanted{*code, event.bytes}) : std::nullopt;
}

struct Sum {
  const Told* told;
  std::string target;
  std::vector<EventCounter> counters;
  std::uint32_t series = 0;
};

class Uncore : public Source {
 public:
  explicit Uncore(std::vector<Sum> sums) : sums_(std::move(sums)) {}

  void sample(Sink& sink) override {
    for (Sum& one : sums_) {
      double bytes = 0;
      bool is_whole = true;
      for (EventCounter& counter : one.counters) {
        const auto counted = counter.read();
        is_whole = is_whole && counted.has_value();
        bytes += counted.value_or(0);
      }
      if (!is_whole || bytes >= 9e18) continue;  // the next sample has it, or it is no number of bytes
      if (one.series == 0) {
        one.series = sink.series(
            {"bandwidth", one.told->name, one.target, "bytes", run::SeriesKind::counter, one.told->meaning});
      }
      sink.add(one.series, static_cast<std::int64_t>(bytes));
    }
  }

 private:
  std::vector<Sum> sums_;
};

std::string package_of(const Roots& roots, int cpu) {
  KeptFile file(roots.sys + "/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/physical_package_id");
  const auto package = first_number(file.read());
  return package && *package >= 0 ? "package " + std::to_string(*package) : "cpu " + std::to_string(cpu);
}

Error refused(int reason, const std::string& device) {
  if (reason == EACCES || reason == EPERM) {
    return {ErrorKind::unsupported, "this user may not read the counters of the memory controllers", device,
            std::nullopt, "Run as root or with CAP_PERFMON, or set kernel.perf_event_paranoid to 0 with sysctl"};
  }
  return {ErrorKind::unsupported,
          std::string("the counters of the memory controllers cannot be read: ") + std::strerror(reason), device,
          std::nullopt, "Stop other programs that count with perf, or mount resctrl"};
}

}  // namespace

Result<std::unique_ptr<Source>> open_uncore(const Roots& roots) {
  const std::string root = roots.sys + "/bus/event_source/devices";
  std::map<std::pair<std::string, std::string>, Sum> sums;  // by name and target
  std::map<std::string_view, std::string_view> kinds;  // which devices tell a value: free running ones tell it again
  Error why;
  const std::vector<std::string> devices = folders_in(root);
  for (const Event& event : kEvents) {
    const auto known = kinds.find(event.told->name);
    if (known != kinds.end() && known->second != event.devices) continue;
    for (const std::string& name : devices) {
      if (!is_one_of(name, event.devices)) continue;
      const std::string device = root + "/" + name;
      const auto wanted = wanted_of(device, event);
      const auto type = first_number(KeptFile(device + "/type").read());
      if (!wanted || !type || *type < 0) continue;
      for (const int cpu : cpus_in(KeptFile(device + "/cpumask").read())) {
        EventCounter counter(roots, static_cast<unsigned>(*type), wanted->code, cpu, wanted->bytes);
        if (!counter.is_open()) {
          why = refused(errno, device);
          continue;
        }
        kinds[event.told->name] = event.devices;
        Sum& sum = sums[{event.told->name, package_of(roots, cpu)}];
        sum.told = event.told;
        sum.target = package_of(roots, cpu);
        sum.counters.push_back(std::move(counter));
      }
    }
  }
  if (sums.empty()) return fail(why);
  std::vector<Sum> all;
  for (auto& [key, sum] : sums) all.push_back(std::move(sum));
  return std::make_unique<Uncore>(std::move(all));
}

}  // namespace stepscope::collect::telemetry::bandwidth
