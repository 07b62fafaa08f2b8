#include "cli/command.h"

#include "cli/terminal.h"

namespace stepscope::cli {

int refused(const Error& error) {
  print_error(error);
  return error.kind == ErrorKind::usage ? kUsage : kRefused;
}

int outcome(const Result<void>& done) { return done ? static_cast<int>(kOk) : refused(done.error()); }

}  // namespace stepscope::cli
