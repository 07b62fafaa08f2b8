// OutFile: a file that is written piece by piece and appears under its name only when it is whole; gzip where the name
// ends in ".gz". "-" is standard output.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stepscope::formats {

class OutFile {
 public:
  static Result<OutFile> create(const std::string& path);
  OutFile(OutFile&&) noexcept;
  ~OutFile();  // an unfinished file is removed

  // Errors are kept and told by finish().
  void add(std::string_view bytes);
  Result<void> finish();

 private:
  struct State;
  explicit OutFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stepscope::formats
