// chakra: one Chakra execution trace (.et) for each rank, PREFIX.RANK.et; with the profile astra the process groups
// beside them, PREFIX.groups.json.
//
// An execution trace and a timeline of one rank are linked first (graph/link.h). docs/chakra.md says what is in the
// files.
#include <filesystem>
#include <map>
#include <set>

#include "formats/out_file.h"
#include "graph/op_graph.h"
#include "report/json_writer.h"
#include "write/chakra/groups.h"
#include "write/chakra/profiles.h"
#include "write/writer.h"

namespace stepscope::write {
namespace {

struct RankTraces {
  const Trace* graph = nullptr;
  const Trace* timeline = nullptr;
};

Error several(const Trace& trace, std::int64_t rank) {
  return {ErrorKind::usage, "is a second file of its kind of rank " + std::to_string(rank), trace.source.path,
          std::nullopt, "Name one execution trace and one timeline of each rank"};
}

// By rank; one of each kind belong together whatever their files say of ranks.
Result<std::map<std::int64_t, RankTraces>> pairs_of(const Run& run) {
  std::map<std::int64_t, RankTraces> pairs;
  std::size_t graphs = 0;
  for (const Trace& trace : run.traces) {
    if (trace.source.format == "chakra")
      return fail({ErrorKind::unsupported, "is a Chakra file already", trace.source.path, std::nullopt,
                   "Name the execution trace it was made from"});
    graphs += trace.only_graph() ? 1 : 0;
  }
  const bool one_pair = run.traces.size() == 2 && graphs == 1;
  for (const Trace& trace : run.traces) {
    const std::int64_t rank = one_pair ? run.traces.front().rank.rank : trace.rank.rank;
    const Trace*& place = trace.only_graph() ? pairs[rank].graph : pairs[rank].timeline;
    if (place != nullptr) return fail(several(trace, rank));
    place = &trace;
  }
  return pairs;
}

Result<void> keep(const Run& run, const std::string& path) {
  for (const Trace& trace : run.traces) {
    std::error_code none;
    if (std::filesystem::equivalent(trace.source.path, path, none))
      return fail(
          {ErrorKind::usage, "is the trace itself; the output would replace it", path, {}, "Name another prefix"});
  }
  return {};
}

Result<void> write_groups(const chakra::Groups& groups, const chakra::Losses& losses, const std::string& path,
                          std::string& lost) {
  report::JsonWriter json;
  json.begin_object();
  for (const std::string& name : losses.groups) {
    if (name.empty() || name == "0") continue;  // all ranks
    const auto ranks = groups.ranks_of.find(name);
    if (ranks == groups.ranks_of.end() || ranks->second.empty()) {
      lost += (lost.empty() ? "" : ", ") + name;
      continue;
    }
    json.key(name).begin_array(report::JsonWriter::Layout::line);
    for (const std::int64_t rank : ranks->second) json.number(rank);
    json.end_array();
  }
  json.end_object();
  auto file = formats::OutFile::create(path);
  if (!file) return fail(file.error());
  file->add(json.take() + "\n");
  return file->finish();
}

void tell_losses(const chakra::Losses& losses, const std::string& unknown_groups, const WriteOptions& options) {
  if (!options.tell) return;
  const auto tell = [&](std::uint64_t count, const std::string& what) {
    if (count > 0) options.tell(std::to_string(count) + " " + what);
  };
  if (losses.untimed) {
    options.tell(
        "an execution trace alone says no times, so all durations are 0; name the timeline of the same steps "
        "beside it");
  }
  tell(losses.without_peer,
       "sends and receives name no peer: they are written without one (full) or as delays (astra)");
  tell(losses.without_bytes,
       "communications have no size recorded: they are written with 0 bytes (full) or as delays "
       "(astra); record with record_shapes=True");
  tell(losses.edges_dropped, "dependencies ran backwards in time and were left out");
  if (!unknown_groups.empty())
    options.tell("the ranks of process groups " + unknown_groups + " are not recorded: add them to the groups file");
}

Result<void> write_rank(const RankTraces& traces, const chakra::Groups& groups, bool astra, const std::string& path,
                        chakra::Losses& losses) {
  const auto graph = graph::op_graph(traces.graph, traces.timeline);
  if (!graph) return fail(graph.error());
  if (graph->nodes.empty()) {
    const Trace& trace = traces.timeline != nullptr ? *traces.timeline : *traces.graph;
    return fail({ErrorKind::unsupported,
                 "holds no operators, so there is nothing to convert",
                 trace.source.path,
                 {},
                 "Record with ProfilerActivity.CPU"});
  }
  if (astra && !graph->timed) {
    return fail({ErrorKind::unsupported, "has no times, and the profile astra is about times",
                 traces.graph->source.path, std::nullopt, "Name the timeline beside it, or use --profile full"});
  }
  losses.untimed |= !graph->timed;
  losses.edges_dropped += graph->edges_dropped;
  auto file = formats::OutFile::create(path);
  if (!file) return fail(file.error());
  chakra::Records records(*file);
  records.begin(astra ? "astra" : "full", graph->rank());
  (astra ? chakra::write_astra : chakra::write_full)(*graph, groups, records, losses);
  return file->finish();
}

Result<void> write_chakra(const Run& run, const std::string& out, const WriteOptions& options) {
  const bool astra = options.profile == "astra";
  if (!astra && options.profile != "full") {
    return fail({ErrorKind::usage, "there is no profile " + options.profile, "", std::nullopt,
                 "Choose --profile full or astra"});
  }
  if (!options.one_file && out.ends_with('/')) {
    return fail({ErrorKind::usage, "is a folder and no prefix of file names", out, std::nullopt,
                 "Name one in it, such as -o " + out + "job"});
  }
  const auto pairs = pairs_of(run);
  if (!pairs) return fail(pairs.error());
  const chakra::Groups groups = chakra::groups_of(run);
  chakra::Losses losses;
  for (const auto& [rank, traces] : *pairs) {
    const std::string path = options.one_file ? out : out + "." + std::to_string(rank) + ".et";
    if (auto kept = keep(run, path); !kept) return kept;
    if (auto done = write_rank(traces, groups, astra, path, losses); !done) return done;
  }
  std::string unknown_groups;
  if (astra) {
    if (auto done = write_groups(groups, losses, out + ".groups.json", unknown_groups); !done) return done;
  }
  tell_losses(losses, unknown_groups, options);
  return {};
}

}  // namespace

Writer chakra_writer() {
  return {
      "chakra",     "PREFIX.RANK.et for each rank, for the tools of MLCommons' Chakra and for ASTRA-sim; not telemetry",
      true,         false,
      write_chakra, true};
}

}  // namespace stepscope::write
