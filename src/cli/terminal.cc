#include "cli/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "report/shorten.h"
#include "report/utf8.h"

namespace stepscope::cli {
namespace {

std::string_view env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool wants_color(bool is_terminal) {
  if (!env("NO_COLOR").empty()) return false;
  if (const auto force = env("FORCE_COLOR"); !force.empty()) return force != "0";
  return is_terminal && env("TERM") != "dumb" && !env("TERM").empty();
}

bool is_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(env(name));
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::tolower(c); });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

unsigned width_of(int descriptor) {
  constexpr unsigned narrowest = 40, widest = 400, otherwise = 100;
  unsigned columns = 0;
  const auto text = env("COLUMNS");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
  if (error != std::errc() || end != text.data() + text.size() || columns == 0) {
    winsize size{};
    columns = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
  }
  return std::clamp(columns, narrowest, widest);
}

// While it lives, a closed pipe is an error of write() instead of the end of the process. Not set for the whole
// process: `stepscope run` must not hand an ignored signal on to the job.
class QuietPipe {
 public:
  QuietPipe() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &before_);
  }
  ~QuietPipe() { sigaction(SIGPIPE, &before_, nullptr); }
  QuietPipe(const QuietPipe&) = delete;
  QuietPipe& operator=(const QuietPipe&) = delete;

 private:
  struct sigaction before_ {};
};

// 0 or the errno.
int write_all(int descriptor, std::string_view text) {
  const QuietPipe quiet;
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

Error write_error(const std::string& path, int error) {
  Error result{ErrorKind::unreadable, fmt::format("cannot write: {}", std::strerror(error)), path, {}, ""};
  if (error == ENOENT || error == ENOTDIR) result.hint = "Create the folder first";
  if (error == EACCES || error == EROFS) result.hint = "Choose a place that you may write to with -o FILE";
  if (error == ENOSPC || error == EDQUOT) result.hint = "Free some space or choose another place with -o FILE";
  return result;
}

}  // namespace

Terminal terminal_of(int descriptor) {
  Terminal terminal;
  terminal.is_terminal = isatty(descriptor) == 1;
  terminal.color = wants_color(terminal.is_terminal);
  terminal.ascii = !is_utf8_locale();
  terminal.width = width_of(descriptor);
  return terminal;
}

void print_notice(std::string_view sentence) {
  const std::string text = "stepscope: " + report::printable(sentence) + "\n";
  write_all(STDERR_FILENO, is_utf8_locale() ? text : report::to_ascii(text));
}

void print_error(const Error& error) { print_notice(to_text(error)); }

void write_stderr(std::string_view text) { write_all(STDERR_FILENO, text); }

Result<void> write_stdout(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error != 0 && error != EPIPE) return fail(write_error("standard output", error));
  return {};
}

Result<void> write_file(const std::string& path, std::string_view text) {
  if (path == "-") return write_stdout(text);
  struct stat info {};
  if (stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) {
      return fail({ErrorKind::unreadable, "cannot write: this is a folder", path, {}, "Name a file in it"});
    }
    if (!S_ISREG(info.st_mode)) {  // a pipe or /dev/stdout cannot be replaced, only written to
      const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      const int error = descriptor < 0 ? errno : write_all(descriptor, text);
      if (descriptor >= 0) ::close(descriptor);
      if (error != 0 && error != EPIPE) return fail(write_error(path, error));
      return {};
    }
  }
  const std::string temporary = fmt::format("{}.{}.part", path, getpid());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return fail(write_error(path, errno));
  int error = write_all(descriptor, text);
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(temporary.c_str());
  return fail(write_error(path, error));
}

ProgressLine::ProgressLine() : terminal_(terminal_of(STDERR_FILENO)), start_(Clock::now()), shown_(start_) {}

void ProgressLine::show(std::string_view what, double share) {
  const auto now = Clock::now();
  if (!terminal_.is_terminal || now - start_ < std::chrono::seconds(1)) return;
  const bool known = share >= 0 && share <= 1;
  if (known && visible_ && now - shown_ < std::chrono::milliseconds(100)) return;
  shown_ = now;
  visible_ = true;
  const std::size_t room = terminal_.width - 1;
  std::string text = known ? fmt::format("{:3d} %  ", static_cast<int>(share * 100)) : "";
  text = report::cut_middle(text + report::printable(what), room);
  if (terminal_.ascii) text = report::to_ascii(text);
  // A dumb terminal cannot erase the rest of the line: spaces do.
  const std::string rest = env("TERM") == "dumb" ? std::string(room - report::display_width(text), ' ') : "\x1b[K";
  write_all(STDERR_FILENO, fmt::format("\r{}{}", text, rest));
}

void ProgressLine::erase() {
  if (!visible_) return;
  visible_ = false;
  write_all(STDERR_FILENO, env("TERM") == "dumb" ? "\n" : "\r\x1b[K");
}

}  // namespace stepscope::cli
