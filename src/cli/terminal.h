// What a command may know of the terminal, and how it writes to it. Shared by the commands; prints nothing by itself.
//
// Rules: colors and progress only on a terminal; NO_COLOR wins over FORCE_COLOR, which wins over TERM=dumb; COLUMNS
// wins over what the terminal says; ASCII when the locale is not UTF-8. Results go to stdout, everything else to
// stderr, and a reader that has gone away (a closed pipe) ends the output quietly.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stepscope::cli {

struct Terminal {
  bool is_terminal = false;
  bool color = false;
  bool ascii = false;
  unsigned width = 100;
};

Terminal terminal_of(int descriptor);  // 1 or 2

// One line "stepscope: ERROR" on stderr.
void print_error(const Error& error);
// One line "stepscope: SENTENCE" on stderr.
void print_notice(std::string_view sentence);

// As it is, on stderr.
void write_stderr(std::string_view text);
// Writes to stdout. A closed pipe is no error: the reader has seen enough.
Result<void> write_stdout(std::string_view text);
// Writes a file by way of a temporary one beside it, so that nobody ever sees half of it. "-" is stdout.
Result<void> write_file(const std::string& path, std::string_view text);

// A line on stderr that says what takes so long: shown after one second, only on a terminal, erased at the end.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { erase(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `share` is what is done, 0..1; outside of it: unknown.
  void show(std::string_view what, double share);
  void erase();

 private:
  using Clock = std::chrono::steady_clock;
  Terminal terminal_;
  Clock::time_point start_, shown_;
  bool visible_ = false;
};

}  // namespace stepscope::cli
