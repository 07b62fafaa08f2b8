#include "write/writer.h"

namespace stepscope::write {

const Writer* find_writer(std::string_view name) {
  for (const Writer& writer : writers()) {
    if (writer.name == name) return &writer;
  }
  return nullptr;
}

std::string lane_name(std::int64_t rank, std::string_view name, const WriteOptions& options) {
  const std::string number = std::to_string(rank);
  const std::string lead = options.lane_prefix.empty() ? "rank " + number + " / " : options.lane_prefix + number + "_";
  return lead + std::string(name);
}

bool is_of_machine(const Trace& trace, const Track& track) {
  return trace.strings[track.process].starts_with(kMachineProcess);
}

}  // namespace stepscope::write
