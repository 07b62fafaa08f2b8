#include "run/manifest.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "run/json_text.h"

extern char** environ;

namespace stepscope::run {
namespace {

constexpr std::string_view kMask = "***";

bool looks_secret(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  static constexpr std::array kWords{"TOKEN",   "SECRET", "PASSWORD",   "PASSWD",     "CREDENTIAL",  "API_KEY",
                                     "API-KEY", "APIKEY", "ACCESS_KEY", "ACCESS-KEY", "PRIVATE_KEY", "AUTH"};
  // Tokenizers and token counts are everyday options of these jobs.
  for (const char* plain : {"TOKENIZER", "TOKENS", "NUM_TOKEN", "MAX_TOKEN", "NUM-TOKEN", "MAX-TOKEN", "AUTHOR"}) {
    if (upper.find(plain) != std::string::npos) return false;
  }
  return std::any_of(kWords.begin(), kWords.end(), [&](const char* w) { return upper.find(w) != std::string::npos; });
}

// A token that says by its first letters whose it is: nobody has to name it for it to be one.
bool is_token(std::string_view word) {
  static constexpr std::array<std::string_view, 10> kPrefixes{"hf_",    "sk-",   "ghp_", "gho_", "github_pat_",
                                                              "glpat-", "xoxb-", "AKIA", "AIza", "eyJ"};
  const auto* prefix = std::find_if(kPrefixes.begin(), kPrefixes.end(),
                                    [&](std::string_view p) { return word.substr(0, p.size()) == p; });
  if (prefix == kPrefixes.end()) return false;
  std::size_t longest = 0;  // letters and digits in a row: a file name has words
  std::size_t row = 0;
  for (const unsigned char c : word.substr(prefix->size())) {
    if (c == '/') return false;
    row = std::isalnum(c) != 0 ? row + 1 : 0;
    longest = std::max(longest, row);
  }
  return longest >= 16;
}

// https://user:password@host/path without what stands between // and @.
void mask_address(std::string& word) {
  const std::size_t scheme = word.find("://");
  if (scheme == std::string::npos) return;
  const std::size_t begin = scheme + 3;
  const std::size_t at = word.find('@', begin);
  if (at == std::string::npos || word.find('/', begin) < at || word.find(':', begin) > at) return;
  word.replace(begin, at - begin, kMask);
}

bool explains(std::string_view name) {
  static constexpr std::array kNames{"RANK",          "LOCAL_RANK",   "WORLD_SIZE",       "LOCAL_WORLD_SIZE",
                                     "GROUP_RANK",    "NODE_RANK",    "MASTER_ADDR",      "MASTER_PORT",
                                     "SLURM_JOB_ID",  "SLURM_NTASKS", "SLURM_PROCID",     "SLURM_NNODES",
                                     "SLURM_STEP_ID", "VIRTUAL_ENV",  "CONDA_DEFAULT_ENV"};
  static constexpr std::array kPrefixes{"CUDA_", "NCCL_", "TORCH", "PYTORCH_", "OMP_",           "MKL_",   "KINETO_",
                                        "HIP_",  "ROCR_", "RCCL_", "GLOO_",    "NVIDIA_VISIBLE", "TRITON_"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view p) { return name.substr(0, p.size()) == p; });
}

std::string list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? ", " : "") + json_string(text);
  return out + "]";
}

template <class T>
std::string number_or_null(const std::optional<T>& value) {
  return value ? std::to_string(*value) : "null";
}

}  // namespace

Arguments masked(const Arguments& command) {
  Arguments out = command;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t equals = out[i].find('=');
    const std::size_t value = equals == std::string::npos ? 0 : equals + 1;
    const bool named = value > 0 && looks_secret(std::string_view(out[i]).substr(0, equals));
    if (named || is_token(std::string_view(out[i]).substr(value))) {
      out[i] = out[i].substr(0, value).append(kMask);
    } else if (value == 0 && out[i].size() > 2 && out[i][0] == '-' && looks_secret(out[i]) && i + 1 < out.size()) {
      out[++i] = kMask;
    }
    mask_address(out[i]);
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> explaining_environment(char** environ_of_process) {
  std::vector<std::pair<std::string, std::string>> out;
  for (char** at = environ_of_process; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry = *at;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || !explains(entry.substr(0, equals))) continue;
    const std::string_view name = entry.substr(0, equals);
    out.emplace_back(name, looks_secret(name) ? kMask : entry.substr(equals + 1));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string to_json(const Manifest& m) {
  std::string environment;
  for (const auto& [name, value] : m.environment) {
    environment +=
        (environment.empty() ? "" : ",") + std::string("\n    ") + json_string(name) + ": " + json_string(value);
  }
  std::string processes;
  for (const ProcessNote& note : m.processes) processes += (processes.empty() ? "\n    " : ",\n    ") + note.json;
  std::string out = "{\n  \"schema_version\": " + std::to_string(kManifestVersion);
  const auto add = [&](const char* name, const std::string& value) {
    out += ",\n  \"" + std::string(name) + "\": " + value;
  };
  add("stepscope_version", json_string(m.version));
  add("job", json_string(m.job));
  add("command", list(masked(m.command)));
  add("directory", json_string(m.directory));
  add("host", json_string(m.host));
  add("capture", json_string(m.capture));
  add("environment", "{" + environment + (environment.empty() ? "" : "\n  ") + "}");
  add("started_unix_ns", std::to_string(m.started_unix_ns));
  add("ended_unix_ns", number_or_null(m.ended_unix_ns));
  add("exit_code", number_or_null(m.exit_code));
  add("signal", number_or_null(m.signal));
  add("problems", list(m.problems));
  add("processes", "[" + processes + (processes.empty() ? "" : "\n  ") + "]");
  return out + "\n}\n";
}

Result<void> write_manifest(const std::string& run_folder, const Manifest& manifest) {
  return write_manifest_as(run_folder + "/run.json", manifest);
}

Result<void> write_manifest_as(const std::string& path, const Manifest& manifest) {
  const std::string partial = path + ".tmp";
  const std::string text = to_json(manifest);
  std::FILE* file = std::fopen(partial.c_str(), "wbe");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (written) written = std::rename(partial.c_str(), path.c_str()) == 0;
  if (written) return {};
  return fail(
      {ErrorKind::unreadable, std::string("cannot write the run's manifest: ") + std::strerror(errno), path, {}, ""});
}

std::int64_t unix_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Manifest start_manifest(std::string_view stepscope_version, const std::string& job, const Arguments& command,
                        const std::string& capture) {
  Manifest manifest;
  manifest.version = stepscope_version;
  manifest.job = job;
  manifest.command = command;
  std::error_code code;
  manifest.directory = std::filesystem::current_path(code).string();
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  manifest.host = host;
  manifest.capture = capture;
  manifest.environment = explaining_environment(environ);
  manifest.started_unix_ns = unix_now_ns();
  return manifest;
}

}  // namespace stepscope::run
