// `stepscope live [JOB]`: how a job that runs under `stepscope run` stands, from the marks that its ranks keep.
//
// On a terminal the picture is drawn again every second, in place and without the alternate screen, so that the last
// one stays when it ends; elsewhere it is printed once. Reading the marks costs the job nothing.
#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "cli/command.h"
#include "cli/live/advice.h"
#include "cli/live/columns.h"
#include "cli/live/machine.h"
#include "cli/run_paths.h"
#include "cli/terminal.h"
#include "collect/requests.h"
#include "report/format.h"
#include "report/utf8.h"
#include "run/manifest.h"
#include "run/progress.h"

namespace stepscope::cli {
namespace {

constexpr std::size_t kWindow = 20;    // steps that the medians are over
constexpr std::size_t kMostRows = 32;  // ranks on the screen; the slowest always among them
constexpr double kStaleSeconds = 10;   // without a mark: said

struct LiveOptions {
  std::string job, out = "stepscope";
  bool once = false;
};

volatile std::sig_atomic_t stopped = 0;

std::string sparkline(const std::vector<std::int64_t>& values, bool ascii) {
  static constexpr std::array<std::string_view, 8> kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::string_view kAscii = "_.-=*#%@";
  if (values.empty()) return "";
  const std::int64_t most = std::max<std::int64_t>(*std::max_element(values.begin(), values.end()), 1);
  std::string out;
  for (const std::int64_t value : values) {
    const auto level = static_cast<std::size_t>(std::clamp<std::int64_t>(value * 8 / (most + 1), 0, 7));
    out += ascii ? std::string(1, kAscii[level]) : std::string(kBars[level]);
  }
  return out;
}

std::string share(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? "–" : fmt::format("{:.0f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string doing(const run::RankProgress& rank, std::int64_t now) {
  if (!rank.running) return "ended";
  if (rank.left) return "not watched any more";
  const double idle_s = static_cast<double>(now - std::max(rank.last_end_ns, rank.phase_since_ns)) / 1e9;
  std::string what = rank.phase_now == 0 ? "" : std::string(run::phase_name(rank.phase_now));
  if (idle_s > kStaleSeconds) {
    return fmt::format("{} for {:.0f} s", what.empty() ? "no mark" : "in " + what, idle_s);
  }
  return what;
}

// A line that wraps would take more rows than are drawn over the next time.
std::string cut_lines(const std::string& text, std::size_t width) {
  std::string out;
  std::size_t column = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = report::decode_at(text, at).bytes;
    const std::string_view one = std::string_view(text).substr(at, bytes);
    column = one == "\n" ? 0 : column + report::display_width(one);
    if (column <= width) out += one;
    at += bytes;
  }
  return out;
}

std::string rank_line(const run::RankProgress& rank, std::int64_t now, bool slow, const Terminal& terminal) {
  const std::int64_t step = rank.median_step_ns.value_or(0);
  std::string line = right(std::to_string(rank.rank), 5) + right(report::format_count(rank.steps), 9) +
                     right(rank.median_step_ns ? report::format_time(static_cast<double>(step)) : "–", 11);
  for (const std::size_t phase : {1, 2, 3, 4, 0}) line += right(share(rank.phase_ns[phase], step), 7);
  const std::size_t room = terminal.width > 90 ? 20 : 8;
  std::vector<std::int64_t> recent = rank.step_ns;
  if (recent.size() > room) recent.erase(recent.begin(), recent.end() - static_cast<std::ptrdiff_t>(room));
  line += "  " + sparkline(recent, terminal.ascii) + " " + (slow ? "slowest " : "") + doing(rank, now);
  return line;
}

// Which ranks fit: the first ones, and the slowest.
std::vector<std::size_t> shown_ranks(std::size_t count, std::optional<std::size_t> slow) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < std::min(count, kMostRows); i++) rows.push_back(i);
  if (slow && *slow >= rows.size()) rows.push_back(*slow);
  return rows;
}

std::string picture(const std::string& folder, const Terminal& terminal, std::size_t& running) {
  std::vector<run::RankProgress> ranks;
  std::string damaged;
  for (const std::string& path : run::ring_files(folder)) {
    if (const auto ring = run::read_ring(path)) {
      ranks.push_back(run::progress_of(*ring, kWindow));
    } else {
      damaged = to_text(ring.error());
    }
  }
  std::sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  running =
      static_cast<std::size_t>(std::count_if(ranks.begin(), ranks.end(), [](const auto& r) { return r.running; }));
  std::int64_t expected = 0;
  for (const run::RankProgress& rank : ranks) expected = std::max(expected, rank.world_size);
  std::string out =
      fmt::format("{}: {} of {} present, {} running\n", folder, report::format_plural(ranks.size(), "rank"),
                  std::max<std::int64_t>(expected, 1), running);
  if (ranks.empty()) return out + "No rank has ended a step yet.\n";
  const std::string head = " rank     step     median  data   fwd   bwd    opt  other  last steps";
  out += head + "\n";
  const auto slow = run::slowest(ranks);
  const std::int64_t now = run::unix_now_ns();
  const std::vector<std::size_t> rows = shown_ranks(ranks.size(), slow);
  std::vector<std::int64_t> shown;
  for (const std::size_t i : rows) {
    out += rank_line(ranks[i], now, slow == i, terminal) + "\n";
    shown.push_back(ranks[i].rank);
  }
  if (rows.size() < ranks.size()) out += fmt::format("and {} more ranks\n", ranks.size() - rows.size());
  out += machine_text(folder, shown);
  if (!damaged.empty()) out += damaged + "\n";
  return terminal.ascii ? report::to_ascii(out) : out;
}

// Keys without Enter, as long as this lives.
class Keys {
 public:
  Keys() {
    usable_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!usable_) return;
    struct termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  ~Keys() {
    if (usable_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  bool usable() const { return usable_; }
  // The key pressed within `milliseconds`, 0: none.
  char wait(int milliseconds) const {
    struct pollfd input {
      STDIN_FILENO, POLLIN, 0
    };
    char key = 0;
    if (::poll(usable_ ? &input : nullptr, usable_ ? 1 : 0, milliseconds) != 1) return 0;
    return ::read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';
  }

 private:
  bool usable_ = false;
  struct termios before_ {};
};

// ": asked for", or what the ranks made of it.
std::string outcome_of_request(const std::string& folder, const std::string& request) {
  std::vector<std::string> problems;
  std::size_t done = 0;
  std::string how;
  for (const run::ProcessNote& note : run::read_process_notes(folder, problems)) {
    const auto found = note.requests.find(request);
    if (found == note.requests.end()) continue;
    done++;
    how = found->second;
  }
  return done == 0 ? ": asked for" : fmt::format(": {} by {}", how, report::format_plural(done, "rank"));
}

void watch(const std::string& folder, const Terminal& terminal) {
  const Keys keys;
  std::signal(SIGINT, [](int) { stopped = 1; });
  std::signal(SIGTERM, [](int) { stopped = 1; });
  std::string said = keys.usable()
                         ? "t: record 3 steps now   a: what to change first   m: snapshot of GPU memory   q: quit"
                         : "Ctrl-C: quit";
  const std::string help = said;
  std::string asked;   // the last request
  std::string advice;  // as it was when it was asked for
  std::size_t lines = 0;
  for (;;) {
    std::size_t running = 0;
    const std::string text = cut_lines(picture(folder, terminal, running) + advice + said + "\n", terminal.width);
    const std::string up = lines > 0 ? fmt::format("\x1b[{}A\x1b[J", lines) : "";
    if (!write_stdout(up + text) || stopped != 0) return;
    lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    const char key = keys.wait(1000);
    if (key == 'q' || stopped != 0) return;
    if (!asked.empty()) said = help + "   " + asked + outcome_of_request(folder, asked);
    if (key == 'a') {
      if (!write_stdout("Looking for causes in the newest recording …\n")) return;
      lines++;
      advice = newest_advice(folder);
      if (terminal.ascii) advice = report::to_ascii(advice);
    }
    if (key != 't' && key != 'm') continue;
    collect::Request wanted;
    if (key == 'm') wanted.wanted = collect::Wanted::memory;
    const auto request = collect::write_request(folder, wanted);
    asked = request ? *request : "";
    said = request ? help + "   " + asked + ": asked for" : to_text(request.error());
  }
}

int show(const LiveOptions& options) {
  const auto folder = find_run(options.job, options.out);
  if (!folder) return refused(folder.error());
  const Terminal terminal = terminal_of(STDOUT_FILENO);
  if (terminal.is_terminal && !options.once) {
    watch(*folder, terminal);
    return kOk;
  }
  std::size_t running = 0;
  return outcome(write_stdout(picture(*folder, terminal, running)));
}

constexpr const char* kLiveExamples = R"(Examples:
  stepscope live                       the newest run in ./stepscope
  stepscope live stepscope/train       the newest run of a job
  stepscope live RUN_FOLDER --once     once, for scripts
Keys: t records 3 steps, a says what to change first by the recordings so far, m
takes a snapshot of GPU memory, q quits.
Columns: share of the median step in data loading, forward, backward, optimizer
and outside of them; below, of the last seconds: cores, the main thread's part of
one core and its time without one, memory, reads and writes, its GPU.)";

void set_up_live(CLI::App& app, int& code) {
  auto options = std::make_shared<LiveOptions>();
  if (const char* out = std::getenv("STEPSCOPE_OUT"); out != nullptr && *out != '\0') options->out = out;
  app.add_option("job", options->job, "Run folder, or a folder of runs (default ./stepscope)");
  app.add_flag("--once", options->once, "Print once and end");
  app.footer(kLiveExamples);
  app.callback([options, &code] { code = show(*options); });
}

}  // namespace

Command live_command() { return {"live", "Show how a running job stands, rank by rank", set_up_live}; }

}  // namespace stepscope::cli
