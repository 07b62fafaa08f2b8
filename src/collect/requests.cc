// A number is taken by making its temporary file exclusively; only its maker may rename onto the final name, so what
// exists under that name by then came before and the next number is tried.
#include "collect/requests.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/whole_file.h"
#include "run/json_text.h"
#include "run/manifest.h"

namespace stepscope::collect {
namespace {

constexpr int kMostRequests = 9999;

Error system_error(const std::string& path, int reason) {
  return {ErrorKind::unreadable, std::string("cannot write the request: ") + std::strerror(reason), path, {}, ""};
}

std::string to_json(const Request& request, const std::string& id) {
  std::string text = "{\"schema_version\": " + std::to_string(kRequestVersion) + ", \"id\": " + run::json_string(id) +
                     ", \"unix_ns\": " + std::to_string(run::unix_now_ns());
  if (request.wanted == Wanted::memory) {
    text += ", \"what\": \"memory\"";
  } else if (request.seconds > 0) {
    text += ", \"seconds\": " + std::to_string(request.seconds) +
            ", \"start_unix_ns\": " + std::to_string(request.start_unix_ns);
  } else {
    text += ", \"steps\": " + std::to_string(request.steps) + (request.by_time ? ", \"align\": \"time\"" : "");
  }
  return text + ", \"ranks\": " + run::json_string(request.ranks) + (request.detach ? ", \"detach\": true" : "") +
         "}\n";
}

// Closes `file` in any case. 0, or the reason.
int write_whole(int file, const std::string& text) {
  std::size_t done = 0;
  int reason = 0;
  while (done < text.size() && reason == 0) {
    const ssize_t wrote = ::write(file, text.data() + done, text.size() - done);
    if (wrote >= 0) {
      done += static_cast<std::size_t>(wrote);
    } else if (errno != EINTR) {
      reason = errno;
    }
  }
  return ::close(file) != 0 && reason == 0 ? errno : reason;
}

}  // namespace

std::int64_t start_after(double warmup_s) {
  constexpr double kAllHaveLookedS = 1.5;  // they look once a second
  return run::unix_now_ns() + static_cast<std::int64_t>((kAllHaveLookedS + warmup_s) * 1e9);
}

Result<std::string> write_request(const std::string& run_folder, const Request& request) {
  const std::string folder = run_folder + "/requests";
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) return fail(system_error(folder, errno));
  for (int number = 1; number <= kMostRequests; ++number) {
    char id[8];
    std::snprintf(id, sizeof id, "%04d", number);
    const std::string path = folder + "/" + id + ".json";
    const std::string partial = path + ".tmp";
    if (::access(path.c_str(), F_OK) == 0) continue;
    const int file = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0) return fail(system_error(path, errno));
    if (::access(path.c_str(), F_OK) == 0) {  // written between the two looks
      ::close(file);
      ::unlink(partial.c_str());
      continue;
    }
    int reason = write_whole(file, to_json(request, id));
    if (reason == 0 && ::rename(partial.c_str(), path.c_str()) != 0) reason = errno;
    if (reason == 0) return std::string(id);
    ::unlink(partial.c_str());
    return fail(system_error(path, reason));
  }
  return fail({ErrorKind::too_large, "9999 requests were written already", folder, {}, ""});
}

Result<void> withdraw_request(const std::string& run_folder, const std::string& id) {
  const std::string path = run_folder + "/requests/" + id + ".withdrawn";
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return fail(system_error(path, errno));
  ::close(file);
  return {};
}

std::optional<std::int64_t> chosen_start(const std::string& run_folder, const std::string& id) {
  const std::string text = whole_file(run_folder + "/requests/" + id + ".start");
  static constexpr std::string_view kKey = "\"start_step\": ";
  const std::size_t at = text.find(kKey);
  if (at == std::string::npos) return std::nullopt;
  std::int64_t step = 0;
  const char* const first = text.data() + at + kKey.size();
  const auto parsed = std::from_chars(first, text.data() + text.size(), step);
  return parsed.ec == std::errc() ? std::optional(step) : std::nullopt;
}

}  // namespace stepscope::collect
