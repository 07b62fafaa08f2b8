#include "collect/settings_haiprof.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "collect/telemetry/collector.h"

namespace stepscope::collect {
namespace {

// Its recorders and what samples the same here; the names of collectors are understood too.
struct Recorder {
  std::string_view name;
  std::string_view collectors;  // separated by spaces
};
constexpr std::array kRecorders{Recorder{"all", "default"}, Recorder{"basic", "cpu memory host io"},
                                Recorder{"gpu", "gpu gpm amd_gpu"}, Recorder{"ib", "infiniband network"},
                                Recorder{"mem", "bandwidth numa"}};

std::vector<std::string> words_of(std::string_view text, char between) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(between, at), text.size());
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::vector<std::string> collectors_of(const std::string& recorder) {
  for (const Recorder& one : kRecorders) {
    if (one.name == recorder) return words_of(one.collectors, ' ');
  }
  for (const telemetry::Collector& one : telemetry::collectors()) {
    if (one.name == recorder) return {recorder};
  }
  return {};
}

std::string interval_variable(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return "HAIPROF_" + name + "_INTERVAL";
}

bool is_interval(const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  return digits && text.size() < 8 && std::stoi(text) > 0;
}

// "gpu:500ms,gpm:500ms"
std::string telemetry_text(const std::string& recorders, const std::function<std::string(const std::string&)>& variable,
                           std::vector<std::string>& slips) {
  std::string out;
  for (const std::string& recorder : words_of(recorders, ',')) {
    const std::vector<std::string> collectors = collectors_of(recorder);
    if (collectors.empty()) slips.push_back("HAIPROF_RECORDERS: nothing here samples what '" + recorder + "' does");
    const std::string interval = variable(interval_variable(recorder));
    const bool usable = is_interval(interval);
    if (!interval.empty() && !usable)
      slips.push_back(interval_variable(recorder) + ": '" + interval + "' is no number of ms");
    for (const std::string& one : collectors) {
      out += (out.empty() ? "" : ",") + one + (usable ? ":" + interval + "ms" : "");
    }
  }
  return out;
}

}  // namespace

std::vector<HaiprofSetting> haiprof_settings(const std::function<std::string(const std::string&)>& variable,
                                             std::vector<std::string>& slips) {
  std::vector<HaiprofSetting> out;
  if (variable("HAIPROF_ENABLED") == "0") return out;
  const auto take = [&](std::string_view setting, const char* origin, std::string text) {
    if (!text.empty()) out.push_back({setting, std::move(text), origin});
  };
  const auto number = [&](const char* name) {  // 0 is its word for "not given"
    const std::string text = variable(name);
    return text == "0" ? std::string() : text;
  };
  const bool asks = !variable("HAIPROF_TIME").empty() || !variable("HAIPROF_ENABLED").empty();
  const bool traces = !number("HAIPROF_TRACE").empty();
  if (traces) {
    take("time", "HAIPROF_TIME", number("HAIPROF_TIME"));
    take("warmup", "HAIPROF_WARMUP", number("HAIPROF_WARMUP"));
  } else if (asks) {
    take("trace", "HAIPROF_TRACE", "0");  // it records none unless it is asked for
    if (!number("HAIPROF_TIME").empty()) {
      slips.push_back("HAIPROF_TIME is how long HAIPROF_TRACE=1 records, which is not set: no trace");
    }
  }
  take("telemetry", "HAIPROF_RECORDERS", telemetry_text(variable("HAIPROF_RECORDERS"), variable, slips));
  take("out", "HAIPROF_LOG_DIR", variable("HAIPROF_LOG_DIR"));
  return out;
}

}  // namespace stepscope::collect
