// Contract of the writers: one file per output format, one line in writers.list. A writer writes what the model holds
// and says in its summary what the format cannot hold.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/trace.h"

namespace stepscope::write {

struct WriteOptions {
  // How lanes of a rank are named where several ranks share a file: empty: "rank 0 / NAME", "r": "r0_NAME".
  std::string lane_prefix;
};

struct Writer {
  std::string_view name;
  std::string_view summary;
  bool folder = false;  // the output is a folder, not a file
  Result<void> (*write)(const Run& run, const std::string& out, const WriteOptions& options);
};

std::span<const Writer> writers();  // from writers.list

// "rank 0 / python", or "r0_python".
std::string lane_name(std::int64_t rank, std::string_view name, const WriteOptions& options);

}  // namespace stepscope::write
