// What the small tables hold.
#include <array>

#include "tables/small_tables.h"

namespace stepscope::tables {
namespace {

constexpr ValueType kInteger = ValueType::integer, kText = ValueType::text, kBoolean = ValueType::boolean;

Value known_text(std::string_view text) { return text.empty() ? Value() : Value(std::string(text)); }
Value known(std::int64_t number, std::int64_t unknown) { return number == unknown ? Value() : Value(number); }
Value number(std::uint64_t value) { return static_cast<std::int64_t>(value); }
Value place(const std::optional<std::uint64_t>& value) { return value ? number(*value) : Value(); }

std::vector<Value> issue_row(const Issue& issue, Value rank) {
  return {std::move(rank),
          issue.code,
          std::string(to_string(issue.severity)),
          issue.sentence,
          known_text(issue.advice),
          number(issue.count),
          known_text(issue.file),
          place(issue.offset),
          place(issue.event)};
}

Table issues_table(const Run& run) {
  Table table{"issues",
              {{"rank", kInteger, Unit::none, "Rank of the file; null: the run as a whole."},
               {"code", kText, Unit::none, "Stable name of the kind of issue."},
               {"severity", kText, Unit::none, "info, repaired (no data lost) or lost."},
               {"sentence", kText, Unit::none, "What is wrong."},
               {"advice", kText, Unit::none, "What to do about it."},
               {"count", kInteger, Unit::count, "How often it occurred."},
               {"file", kText, Unit::none, "File in which it was first seen."},
               {"offset", kInteger, Unit::bytes, "Byte offset of the first one in the uncompressed text."},
               {"event", kInteger, Unit::none, "Number of the first event concerned, in file order."}},
              {}};
  for (const Issue& issue : run.issues) table.rows.push_back(issue_row(issue, {}));
  for (const std::vector<Trace>* part : {&run.traces, &run.snapshots}) {
    for (const Trace& trace : *part) {
      for (const Issue& issue : trace.issues) table.rows.push_back(issue_row(issue, trace.rank.rank));
    }
  }
  return table;
}

Table files_table(const Run& run) {
  Table table{
      "files",
      {{"rank", kInteger, Unit::none, "Rank of the file."},
       {"path", kText, Unit::none, "The file."},
       {"format", kText, Unit::none, "Reader that opened it."},
       {"writer", kText, Unit::none, "Who wrote it, as far as the file says."},
       {"world_size", kInteger, Unit::count, "Ranks of the job, where recorded."},
       {"rank_source", kText, Unit::none, "Where the rank comes from."},
       {"backend", kText, Unit::none, "Communication backend, where recorded."},
       {"compressed", kBoolean, Unit::none, "The file is compressed."},
       {"cached", kBoolean, Unit::none, "It came from the cache."},
       {"file_bytes", kInteger, Unit::bytes, "Size of the file."},
       {"text_bytes", kInteger, Unit::bytes, "Size of its uncompressed text."},
       {"events", kInteger, Unit::count, "Events in the file, metadata included."},
       {"slices", kInteger, Unit::count, "Rows that it gives to the table slices."},
       {"clock_base_ns", kInteger, Unit::unix_ns, "What its times count from: add it to them; null: not recorded."},
       {"step_source", kText, Unit::none, "Where the steps come from."}},
      {}};
  const auto add = [&](const Trace& trace) {
    const Source& source = trace.source;
    table.rows.push_back({trace.rank.rank, source.path, source.format, known_text(source.writer),
                          known(trace.rank.world_size, 0), std::string(to_string(trace.rank.source)),
                          known_text(trace.rank.backend), source.compressed, source.cached, number(source.file_bytes),
                          number(source.text_bytes), number(source.events), number(trace.slices.size()),
                          known(trace.clock_base_ns, kAbsent), known_text(trace.step_source)});
  };
  for (const Trace& trace : run.traces) add(trace);
  for (const Trace& trace : run.snapshots) add(trace);
  return table;
}

Table devices_table(const Run& run) {
  Table table{"devices",
              {{"rank", kInteger, Unit::none, "Rank of the file."},
               {"device", kInteger, Unit::none, "Device index."},
               {"name", kText, Unit::none, "Name of the device."},
               {"sm_count", kInteger, Unit::count, "Multiprocessors."},
               {"max_threads_per_sm", kInteger, Unit::count, "Resident threads of a multiprocessor."},
               {"warp_size", kInteger, Unit::count, "Threads of a warp."},
               {"memory_bytes", kInteger, Unit::bytes, "Memory of the device."},
               {"compute_major", kInteger, Unit::none, "Compute capability, major."},
               {"compute_minor", kInteger, Unit::none, "Compute capability, minor."}},
              {}};
  for (const Trace& trace : run.traces) {
    for (const DeviceInfo& device : trace.devices) {
      const bool capability = device.compute_major != 0;
      table.rows.push_back({trace.rank.rank, known(device.id, -1), known_text(device.name), known(device.sm_count, 0),
                            known(device.max_threads_per_sm, 0), known(device.warp_size, 0),
                            known(device.memory_bytes, 0), capability ? Value(device.compute_major) : Value(),
                            capability ? Value(device.compute_minor) : Value()});
    }
  }
  return table;
}

Table rules_table(const Run& run) {
  Table table{"rules",
              {{"rank", kInteger, Unit::none, "Rank whose device work the rules classified."},
               {"rule", kText, Unit::none, "Stable name of the rule."},
               {"pattern", kText, Unit::none, "What it looks for."},
               {"family", kText, Unit::none, "Op family that it gives."},
               {"class", kText, Unit::none, "Class of device work that it gives."},
               {"why", kText, Unit::none, "Why it does."}},
              {}};
  for (const Trace& trace : run.traces) {
    for (std::size_t i = 1; i < trace.class_rules.size(); i++) {  // [0]: no rule matched
      const ClassRule& rule = trace.class_rules[i];
      table.rows.push_back({trace.rank.rank, rule.name, rule.pattern, known_text(rule.family),
                            std::string(to_string(rule.device_class)), known_text(rule.why)});
    }
  }
  return table;
}

Table metadata_table(const Run& run) {
  Table table{"metadata",
              {{"rank", kInteger, Unit::none, "Rank of the file."},
               {"key", kText, Unit::none, "Name of the member beside the events."},
               {"json", kText, Unit::none, "Its value as the file writes it."}},
              {}};
  for (const Trace& trace : run.traces) {
    for (const Metadata& entry : trace.metadata) table.rows.push_back({trace.rank.rank, entry.key, entry.json});
  }
  return table;
}

}  // namespace

std::span<const SmallTable> small_tables() {
  static constexpr std::array all{
      SmallTable{"issues", "What was odd, repaired or lost in the input.", issues_table},
      SmallTable{"files", "The files that were opened, one per rank.", files_table},
      SmallTable{"devices", "The devices that the files describe.", devices_table},
      SmallTable{"rules", "The rules by which device work was classified.", rules_table},
      SmallTable{"metadata", "What the files hold beside their events.", metadata_table},
  };
  return all;
}

}  // namespace stepscope::tables
