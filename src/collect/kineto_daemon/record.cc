#include "collect/kineto_daemon/record.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "collect/kineto_daemon/collect_traces.h"
#include "collect/kineto_daemon/process.h"
#include "collect/kineto_daemon/rpc.h"
#include "run/manifest.h"

namespace stepscope::collect::kineto {
namespace {

namespace fs = std::filesystem;

// A private folder below /tmp, where every version of Kineto may write; it goes with everything that is left in it.
class Spool {
 public:
  explicit Spool(unsigned user) {
    made_ = ::mkdtemp(path_.data()) != nullptr;
    if (made_ && user != ::geteuid() && ::chown(path_.c_str(), user, static_cast<gid_t>(-1)) != 0) path_.clear();
  }
  ~Spool() {
    std::error_code code;
    if (made_) fs::remove_all(path_, code);
  }
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  bool usable() const { return made_ && !path_.empty(); }
  std::string prefix() const { return path_ + "/trace"; }

 private:
  std::string path_ = "/tmp/stepscope-kineto-XXXXXX";
  bool made_ = false;
};

OnDemand to_request(const Recording& recording, const std::string& prefix) {
  OnDemand out;
  out.file_prefix = prefix;
  if (recording.seconds > 0) {
    out.duration_ms = static_cast<std::int64_t>(recording.seconds * 1000);
  } else {
    out.iterations = recording.steps;
  }
  out.warmup_s = std::max<std::int64_t>(1, static_cast<std::int64_t>(recording.warmup_seconds));
  out.shapes = recording.with.shapes;
  out.memory = recording.with.memory;
  out.stack = recording.with.stack;
  out.flops = recording.with.flops;
  return out;
}

std::vector<std::string> socket_folders(const std::vector<RankProcess>& ranks) {
  std::set<std::string> found;
  for (const RankProcess& rank : ranks) {
    const auto folder = process_variable(rank.process.pid, "KINETO_IPC_SOCKET_DIR");
    if (folder && !folder->empty()) found.insert(*folder);
  }
  return {found.begin(), found.end()};
}

std::vector<int> pids_of(const std::vector<RankProcess>& ranks) {
  std::vector<int> pids;
  for (const RankProcess& rank : ranks) pids.push_back(rank.process.pid);
  std::sort(pids.begin(), pids.end());
  return pids;
}

Result<Collected> by_our_daemon(Server& server, const OnDemand& request, const std::vector<int>& pids) {
  ServeOptions options;
  options.request = request;
  options.expected = pids;
  const auto served = serve(server, options);
  if (!served) return fail(served.error());
  return collect_traces(&server, *served, {});
}

Result<Collected> by_dynolog(const OnDemand& request, const std::vector<RankProcess>& ranks) {
  DynologOptions options;
  options.request = request;
  options.pids = pids_of(ranks);
  const auto job = process_variable(ranks.front().process.pid, "SLURM_JOB_ID");
  if (job) options.job = std::strtoll(job->c_str(), nullptr, 10);
  const auto served = ask_dynolog(options);
  if (!served) return fail(served.error());
  return collect_traces(nullptr, *served, {});
}

// traces/rank3/HOST_PID.TIME.pt.trace.json; the rank is known by the folder, as Kineto does not write it here.
Result<std::string> keep(const TraceFile& file, std::int64_t rank, const std::string& run_folder) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const fs::path place = fs::path("traces") / ("rank" + std::to_string(rank));
  const std::string name =
      std::string(host) + "_" + std::to_string(file.pid) + "." + std::to_string(run::unix_now_ns()) + ".pt.trace.json";
  std::error_code code;
  fs::create_directories(fs::path(run_folder) / place, code);
  if (!code) fs::copy_file(file.path, fs::path(run_folder) / place / name, code);  // /tmp is often another disk
  if (code) return fail({ErrorKind::unreadable, "cannot be kept: " + code.message(), file.path, std::nullopt, ""});
  fs::remove(file.path, code);
  return (place / name).string();
}

}  // namespace

bool asks_daemon(const Process& process) { return process_variable(process.pid, "KINETO_USE_DAEMON").has_value(); }

Result<Recorded> record(const std::vector<RankProcess>& ranks, const Recording& recording) {
  if (recording.seconds <= 0 && ranks.size() > 1) {
    return fail({ErrorKind::usage, "Kineto's daemon starts several ranks together by time only", "", std::nullopt,
                 "Give --time 5 instead of --steps"});
  }
  const Spool spool(ranks.front().process.user);
  if (!spool.usable()) {
    return fail({ErrorKind::unreadable, std::string("no folder for the traces could be made: ") + std::strerror(errno),
                 "/tmp", std::nullopt, "Make room in /tmp"});
  }
  const OnDemand request = to_request(recording, spool.prefix());
  Server::Places places;
  places.folders = socket_folders(ranks);
  Result<Server> server = Server::open(places);
  if (!server && server.error().kind != ErrorKind::unsupported) return fail(server.error());
  const Result<Collected> collected =
      server ? by_our_daemon(*server, request, pids_of(ranks)) : by_dynolog(request, ranks);
  if (!collected) return fail(collected.error());
  Recorded out;
  for (const TraceFile& file : collected->files) {
    const auto rank = std::find_if(ranks.begin(), ranks.end(),
                                   [&](const RankProcess& known) { return known.process.pid == file.pid; });
    const auto position = std::distance(ranks.begin(), rank);
    const auto kept = keep(file, rank == ranks.end() ? position : rank->rank.value_or(static_cast<int>(position)),
                           recording.run_folder);
    if (kept) {
      out.traces.push_back(*kept);
    } else {
      out.problems.push_back(to_text(kept.error()));
    }
  }
  for (const Missing& missing : collected->missing) out.problems.push_back(missing.text + ". " + missing.hint);
  return out;
}

}  // namespace stepscope::collect::kineto
