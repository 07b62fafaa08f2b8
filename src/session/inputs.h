// Inputs: what the user typed → files with the reader that understands each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/issue.h"
#include "read/reader.h"

namespace stepscope::session {

struct InputFile {
  std::string path;
  const read::Reader* reader = nullptr;
  bool found = false;  // in a folder, not named by the user
};

// Files, folders (searched through) and globs → readable files in a stable order. Files in folders that are no trace
// are left out; those that look as if they were meant (.trace.json, .json.gz, an empty .json or one with "rank" in its
// name) become an issue, as does a folder tree of more than `most_files`. Fails when nothing is left.
Result<std::vector<InputFile>> find_inputs(std::span<const std::string> paths, std::vector<Issue>& issues,
                                           std::size_t most_files = 100'000);

// The reader that recognises the file by its content, or an Error that says what the file looks like instead.
Result<const read::Reader*> recognize(const std::string& path);

}  // namespace stepscope::session
