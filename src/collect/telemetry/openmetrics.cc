#include "collect/telemetry/openmetrics.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "run/ring.h"

namespace stepscope::collect::telemetry {
namespace {

using run::SeriesKind;

constexpr std::int64_t kFreshNs = 60'000'000'000;

struct Unit {
  std::string_view ours, name;  // name: empty: counted, or none of the base units
  double scale = 1;
};
constexpr std::array<Unit, 8> kUnits{{{"ns", "seconds", 1e-9},
                                      {"bytes", "bytes"},
                                      {"bytes/s", "bytes_per_second"},
                                      {"uJ", "joules", 1e-6},
                                      {"W", "watts"},
                                      {"ratio", "ratio"},
                                      {"hertz", "hertz"},
                                      {"celsius", "celsius"}}};

Unit unit_of(std::string_view ours) {
  const auto known = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& one) { return one.ours == ours; });
  return known == kUnits.end() ? Unit{ours, ""} : *known;
}

std::string escaped(std::string text) {
  if (!simdjson::validate_utf8(text)) {
    for (char& c : text) c = static_cast<unsigned char>(c) < 0x80 ? c : '?';
  }
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? "\\n" : std::string(1, c);
  }
  return out;
}

std::string label(std::string_view name, const std::string& value) {
  return fmt::format(",{}=\"{}\"", name, escaped(value));
}

// One sentence, without what is of one target only ("Memory of it: NVIDIA H100").
std::string help_of(const std::string& meaning) {
  std::string help = meaning.substr(0, std::min(meaning.find(": "), meaning.find('\n')));
  std::replace(help.begin(), help.end(), '"', '\'');
  return escaped(help);
}

// "gpu 0 mig 1" as labels, in front of what is left of the target.
std::string take_parts(std::string_view& target) {
  constexpr std::array<std::array<std::string_view, 2>, 9> kParts{{{"rank ", "rank"},
                                                                   {"gpu ", "gpu"},
                                                                   {"amd gpu ", "amd_gpu"},
                                                                   {"mig ", "mig"},
                                                                   {"numa ", "numa"},
                                                                   {"package ", "package"},
                                                                   {"die ", "die"},
                                                                   {"L3 ", "l3"},
                                                                   {"cpu ", "cpu"}}};
  std::string labels;
  for (bool found = true; found;) {
    found = false;
    for (const auto& [word, name] : kParts) {
      if (!target.starts_with(word)) continue;
      const std::size_t end = std::min(target.find_first_not_of("0123456789", word.size()), target.size());
      if (end == word.size() || (end < target.size() && target[end] != ' ')) continue;
      labels += label(name, std::string(target.substr(word.size(), end - word.size())));
      target.remove_prefix(std::min(end + 1, target.size()));
      found = true;
    }
  }
  return labels;
}

// nullopt: of a kind of which there may be ever more, such as processes and cgroups.
std::optional<std::string> labels_of(const run::SeriesAbout& about) {
  constexpr std::array<std::array<std::string_view, 2>, 4> kNamed{
      {{"network", "interface"}, {"infiniband", "port"}, {"storage", "mount"}, {"power", "part"}}};
  std::string_view rest = about.target;
  std::string labels = take_parts(rest);
  if (rest.empty() || rest == "host") return labels;
  for (const auto& [collector, name] : kNamed) {
    if (about.collector == collector) return labels + label(name, std::string(rest));
  }
  return std::nullopt;
}

// "cpu_time" of the collector cpu; "host_cpu_user": several collectors have such a name.
std::string name_of(const run::SeriesAbout& about) {
  const std::string own = about.collector + "_";
  const bool says_it = (about.name + "_").starts_with(own) || about.name.starts_with("gpu_");
  return "stepscope_" + (says_it ? "" : own) + about.name;
}

class Text {
 public:
  explicit Text(const Metrics& metrics) : common_(label("job", metrics.job).substr(1) + label("host", metrics.host)) {}

  void add(std::string name, SeriesKind kind, const Unit& unit, const std::string& meaning, const std::string& labels,
           double value) {
    if (!std::isfinite(value)) return;
    if (!unit.name.empty()) name += "_" + std::string(unit.name);
    const bool is_counter = kind == SeriesKind::counter;
    const auto [family, is_new] = families_.try_emplace(name);
    if (is_new) {
      family->second.head = fmt::format("# TYPE {} {}\n", name, is_counter ? "counter" : "gauge");
      if (!unit.name.empty()) family->second.head += fmt::format("# UNIT {} {}\n", name, unit.name);
      family->second.head += fmt::format("# HELP {} {}\n", name, help_of(meaning));
    }
    family->second.samples[labels] =
        fmt::format("{}{}{{{}{}}} {}\n", name, is_counter ? "_total" : "", common_, labels, value * unit.scale);
  }

  std::string whole() const {
    std::string out;
    for (const auto& [name, family] : families_) {
      out += family.head;
      for (const auto& [labels, line] : family.samples) out += line;
    }
    return out + "# EOF\n";
  }

 private:
  struct Family {
    std::string head;
    std::map<std::string, std::string> samples;  // by labels: each once
  };
  std::string common_;
  std::map<std::string, Family> families_;
};

void add_rank(const run::RankProgress& rank, std::int64_t unix_ns, Text& text) {
  const std::string of_rank = label("rank", std::to_string(rank.rank));
  text.add("stepscope_steps", SeriesKind::counter, {}, "Steps that the rank has done", of_rank,
           static_cast<double>(rank.steps));
  const bool is_fresh = (rank.running && !rank.left) || unix_ns - rank.last_end_ns < kFreshNs;
  if (!is_fresh || !rank.median_step_ns || *rank.median_step_ns <= 0) return;
  const auto step_ns = static_cast<double>(*rank.median_step_ns);
  text.add("stepscope_step", SeriesKind::gauge, unit_of("ns"), "Median duration of the newest 20 steps", of_rank,
           step_ns);
  for (unsigned phase = 0; phase < run::kMarkPhases; phase++) {
    const std::string name(phase == 0 ? "other" : run::phase_name(phase));
    text.add("stepscope_phase", SeriesKind::gauge, unit_of("ratio"),
             "Median duration of the phase in the newest 20 steps, as part of the median step",
             of_rank + label("phase", name), static_cast<double>(rank.phase_ns[phase]) / step_ns);
  }
}

}  // namespace

std::string openmetrics_text(const Metrics& metrics) {
  Text text(metrics);
  for (const Newest& one : metrics.sampled) {
    const bool is_fresh = one.monotonic_ns > 0 && metrics.monotonic_ns - one.monotonic_ns < kFreshNs;
    const auto labels = is_fresh ? labels_of(one.about) : std::nullopt;
    if (!labels) continue;
    text.add(name_of(one.about), one.about.kind, unit_of(one.about.unit), one.about.meaning, *labels, one.value());
  }
  for (const run::RankProgress& rank : metrics.ranks) add_rank(rank, metrics.unix_ns, text);
  return text.whole();
}

}  // namespace stepscope::collect::telemetry
