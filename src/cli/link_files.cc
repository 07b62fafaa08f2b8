#include "cli/link_files.h"

#include <fmt/format.h>

#include "cli/terminal.h"
#include "graph/link.h"
#include "report/json_writer.h"
#include "report/report.h"
#include "write/linked_trace.h"

namespace stepscope::cli {
namespace {

struct LinkPair {
  const Trace* graph = nullptr;
  const Trace* timeline = nullptr;
};

Result<LinkPair> pair_of(const Run& run) {
  LinkPair pair;
  int graphs = 0, timelines = 0;
  for (const Trace& trace : run.traces) {
    (trace.only_graph() ? graphs : timelines)++;
    (trace.only_graph() ? pair.graph : pair.timeline) = &trace;
  }
  if (graphs == 1 && timelines == 1) return pair;
  return fail({ErrorKind::usage,
               fmt::format("found {} execution traces and {} timelines; link takes one of each", graphs, timelines),
               run.path, std::nullopt, "Name the two files of one rank"});
}

std::string evidence_of(const graph::Link& link) {
  std::string text;
  for (std::size_t i = 1; i < graph::kLinkEvidences; i++) {
    if (link.nodes[i] == 0) continue;
    text += fmt::format("{}{} by {}", text.empty() ? "" : ", ", link.nodes[i],
                        graph::to_string(static_cast<graph::LinkEvidence>(i)));
  }
  return text;
}

std::string table_of(const graph::Link& link) {
  std::string device;
  if (link.device_outside > 0)
    device = fmt::format("{} more launched before or after these steps", link.device_outside);
  if (link.device_linked + link.device_unlinked + link.device_outside == 0) device = "none was recorded";
  std::string text = fmt::format("{:<12} {:>9} {:>11}  {}\n", "", "matched", "unmatched", "how");
  text += fmt::format("{:<12} {:>9} {:>11}  {}\n", "operators", link.linked(), link.nodes[0], evidence_of(link));
  text += fmt::format("{:<12} {:>9} {:>11}  {}\n", "device work", link.device_linked, link.device_unlinked, device);
  return text;
}

std::string json_of(const graph::Link& link) {
  report::JsonWriter json;
  const auto count = [&](std::string_view key, std::uint64_t value) {
    json.key(key).number(static_cast<std::int64_t>(value));
  };
  json.begin_object().key("schema_version").number(report::kSchemaVersion);
  json.key("operators").begin_object();
  count("matched", link.linked());
  count("unmatched", link.nodes[0]);
  json.key("evidence").begin_object();
  for (std::size_t i = 1; i < graph::kLinkEvidences; i++) {
    count(graph::to_string(static_cast<graph::LinkEvidence>(i)), link.nodes[i]);
  }
  json.end_object().end_object();
  json.key("device_work").begin_object();
  count("matched", link.device_linked);
  count("unmatched", link.device_unlinked);
  count("launched_outside", link.device_outside);
  json.end_object().end_object();
  return json.take() + "\n";
}

}  // namespace

Result<void> link_files(const LinkFiles& files) {
  ProgressLine progress;
  const auto run = files.input.open(progress);
  if (!run) return fail(run.error());
  if (auto kept = keep_inputs(*run, files.output); !kept) return kept;
  const auto pair = pair_of(*run);
  if (!pair) return fail(pair.error());
  progress.show("linking", -1);
  const graph::Link link = graph::find_link(*pair->graph, *pair->timeline);
  progress.erase();
  const std::string counts = files.json ? json_of(link) : table_of(link);
  if (files.output == "-") {
    write_stderr(counts);
  } else if (auto told = write_stdout(counts); !told) {
    return told;
  }
  if (auto enough = graph::covers_enough(link, *pair->graph, *pair->timeline); !enough) return enough;
  if (files.output.empty()) return {};
  return write::write_linked_trace(*pair->graph, *pair->timeline, link, files.output);
}

}  // namespace stepscope::cli
