#include "run/run_folder.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

namespace stepscope::run {
namespace fs = std::filesystem;
namespace {

bool ends_with(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}

// Modules and programs that only start another script; the job is what they start.
bool is_launcher(std::string_view name) {
  static constexpr std::array kLaunchers{"torch.distributed.run",
                                         "torch.distributed.launch",
                                         "accelerate.commands.launch",
                                         "deepspeed.launcher.runner",
                                         "torchrun",
                                         "accelerate",
                                         "deepspeed"};
  return std::find(kLaunchers.begin(), kLaunchers.end(), name) != kLaunchers.end();
}

std::string cleaned(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 80)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
    out += plain ? c : '_';
  }
  while (!out.empty() && (out.front() == '.' || out.front() == '-')) out.erase(0, 1);
  return out.empty() ? "job" : out;
}

Error system_error(ErrorKind kind, std::string message, const fs::path& path, const std::error_code& code) {
  return {kind, std::move(message) + ": " + code.message(), path.string(), {}, "Choose another folder with --out DIR"};
}

}  // namespace

std::string job_name(const Arguments& command) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (ends_with(command[i], ".py")) return cleaned(fs::path(command[i]).stem().string());
    const bool module = i > 0 && command[i] == "-m" && i + 1 < command.size();
    if (module && !is_launcher(command[i + 1])) return cleaned(command[i + 1]);
  }
  return command.empty() ? "job" : cleaned(fs::path(command.front()).filename().string());
}

std::string start_stamp(std::time_t seconds) {
  std::tm local{};
  localtime_r(&seconds, &local);
  static constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  char rest[32];
  std::strftime(rest, sizeof rest, "%d_%H-%M-%S", &local);
  return std::string(kMonths[static_cast<std::size_t>(local.tm_mon)]) + rest;  // whatever the language is set to
}

Result<std::string> make_run_folder(std::string_view out, std::string_view job, std::string_view stamp) {
  std::error_code code;
  const fs::path parent = fs::absolute(fs::path(out), code) / job;
  if (!code) fs::create_directories(parent, code);
  if (code) return fail(system_error(ErrorKind::unreadable, "cannot make the run folder", parent, code));
  for (int n = 1; n <= 10000; ++n) {
    const fs::path folder = parent / (n == 1 ? std::string(stamp) : std::string(stamp) + "-" + std::to_string(n));
    if (fs::create_directory(folder, code)) return folder.lexically_normal().string();
    if (code) return fail(system_error(ErrorKind::unreadable, "cannot make the run folder", folder, code));
  }
  return fail({ErrorKind::unreadable, "too many runs started in the same second", parent.string(), {}, ""});
}

std::vector<std::string> trace_files(const std::string& run_folder) {
  std::vector<std::string> found;
  for (const char* const place : {"traces", kNsysFolder}) {
    std::error_code code;
    fs::recursive_directory_iterator at(fs::path(run_folder) / place, code);
    for (; !code && at != fs::recursive_directory_iterator(); at.increment(code)) {
      const std::string name = at->path().filename().string();
      if (ends_with(name, ".pt.trace.json") || ends_with(name, ".pt.trace.json.gz") || ends_with(name, ".nsys-rep")) {
        found.push_back(at->path().lexically_relative(run_folder).string());
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> wait_for_traces(const std::string& run_folder, const std::vector<std::string>& announced,
                                         double patience_s) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::string> missing;
  std::uintmax_t before = 0;
  for (Clock::time_point grew = Clock::now();;) {
    missing.clear();
    std::uintmax_t bytes = 0;
    for (const std::string& trace : announced) {
      std::error_code code;
      const fs::path path = fs::path(run_folder) / trace;
      if (fs::exists(path, code)) continue;
      missing.push_back(trace);
      const std::uintmax_t size = fs::file_size(path.string() + ".part", code);
      if (!code) bytes += size;
    }
    if (bytes != before) grew = Clock::now();
    before = bytes;
    if (missing.empty() || Clock::now() - grew > std::chrono::duration<double>(patience_s)) return missing;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace stepscope::run
