// Contract of the writers: one file per output format, one line in writers.list. A writer writes what the model holds
// and says in its summary what the format cannot hold.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/trace.h"

namespace stepscope::write {

struct WriteOptions {
  // How lanes of a rank are named where several ranks share a file: empty: "rank 0 / NAME", "r": "r0_NAME".
  std::string lane_prefix;
  std::string profile = "full";                  // chakra: what is written of a rank, "full" or "astra"
  bool one_file = false;                         // chakra: the output is the name of the only rank's file
  std::function<void(std::string_view)> tell{};  // what the format could not hold of this run, a sentence each
};

struct Writer {
  std::string_view name;
  std::string_view summary;
  bool folder = false;    // the output is a folder or several files, not a file
  bool counters = false;  // it holds counters over time, so telemetry too: see write/telemetry.h
  Result<void> (*write)(const Run& run, const std::string& out, const WriteOptions& options);
  bool graphs = false;  // it holds execution traces without a timeline too
};

std::span<const Writer> writers();                 // from writers.list
const Writer* find_writer(std::string_view name);  // null: there is none

// "rank 0 / python", or "r0_python".
std::string lane_name(std::int64_t rank, std::string_view name, const WriteOptions& options);

// Process "machine HOST" of a trace: what was sampled there and is of no rank (write/telemetry.h). It keeps its name
// where several ranks share a file.
inline constexpr std::string_view kMachineProcess = "machine ";
bool is_of_machine(const Trace& trace, const Track& track);

}  // namespace stepscope::write
