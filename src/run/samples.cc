#include "run/samples.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <map>
#include <optional>

#include "base/whole_file.h"
#include "run/json_text.h"

namespace stepscope::run {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostSeries = 100'000;

std::string text_of(simdjson::dom::element line, const char* key) {
  std::string_view text;
  return line[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

// A line that is cut or no JSON is passed over: its records count as unknown.
std::map<std::uint32_t, SeriesAbout> read_series(const std::string& path) {
  std::map<std::uint32_t, SeriesAbout> out;
  const std::string text = whole_file(path);
  simdjson::dom::parser parser;
  for (std::size_t at = 0; at < text.size() && out.size() < kMostSeries;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    simdjson::dom::element line;
    std::int64_t number = 0;
    const simdjson::padded_string padded(text.data() + at, end - at);
    if (parser.parse(padded).get(line) == simdjson::SUCCESS && line["id"].get(number) == simdjson::SUCCESS &&
        number > 0 && number <= UINT32_MAX) {
      out[static_cast<std::uint32_t>(number)] = {
          text_of(line, "collector"),
          text_of(line, "name"),
          text_of(line, "target"),
          text_of(line, "unit"),
          text_of(line, "kind") == "counter" ? SeriesKind::counter : SeriesKind::gauge,
          text_of(line, "meaning")};
    }
    at = end + 1;
  }
  return out;
}

void take_about(std::string_view json, Samples& out) {
  simdjson::dom::parser parser;
  simdjson::dom::element about;
  if (parser.parse(simdjson::padded_string(json)).get(about) != simdjson::SUCCESS) return;
  out.host = text_of(about, "host");
  if (about["pid"].get(out.pid) != simdjson::SUCCESS) out.pid = 0;
}

// The samples of one series on their way: what went back is left out, a counter starts at 0.
class Gathered {
 public:
  explicit Gathered(SeriesAbout about) { series_.about = std::move(about); }

  bool add(std::int64_t t_ns, std::int64_t monotonic_ns, std::uint64_t bits) {
    if (!series_.samples.empty()) {
      const Sample& last = series_.samples.back();
      if (t_ns <= last.t_ns || monotonic_ns <= last.monotonic_ns) return false;
    }
    if (series_.about.kind == SeriesKind::gauge) {
      const double level = std::bit_cast<double>(bits);
      if (!(level == level)) return false;
      series_.samples.push_back({t_ns, level, monotonic_ns});
      return true;
    }
    const auto count = static_cast<std::int64_t>(bits);
    const bool fell = last_ && count < *last_;  // a device that came back: it goes on from here
    if (last_ && !fell)
      since_ += static_cast<double>(static_cast<std::uint64_t>(count) - static_cast<std::uint64_t>(*last_));
    last_ = count;
    series_.samples.push_back({t_ns, since_, monotonic_ns});
    return !fell;
  }
  Series take() { return std::move(series_); }

 private:
  Series series_;
  std::optional<std::int64_t> last_;
  double since_ = 0;
};

}  // namespace

std::string rate_unit(const std::string& unit) { return unit == "ns" ? "cores" : unit + "/s"; }

double rate_between(const SeriesAbout& about, const Sample& before, const Sample& now) {
  const double per_ns = (now.value - before.value) / static_cast<double>(now.monotonic_ns - before.monotonic_ns);
  return about.unit == "ns" ? per_ns : per_ns * 1e9;
}

std::string to_json_line(std::uint32_t number, const SeriesAbout& about) {
  return "{\"id\": " + std::to_string(number) + ", \"collector\": " + json_string(about.collector) +
         ", \"name\": " + json_string(about.name) + ", \"target\": " + json_string(about.target) +
         ", \"unit\": " + json_string(about.unit) +
         ", \"kind\": " + (about.kind == SeriesKind::counter ? "\"counter\"" : "\"gauge\"") +
         ", \"meaning\": " + json_string(about.meaning) + "}\n";
}

std::string series_file_of(const std::string& samples_path) {
  return fs::path(samples_path).replace_extension(".series.jsonl").string();
}

Result<Samples> read_samples(const std::string& path, std::uint64_t newest) {
  const auto read = RecordRing::read(path, kSamplesFormat);
  if (!read) return fail(read.error());
  const RecordRing& ring = *read;
  Samples out;
  take_about(ring.about(), out);
  out.dropped = ring.dropped();
  out.cut = ring.cut();
  out.file_bytes = ring.file_bytes();
  std::map<std::uint32_t, Gathered> gathered;
  for (auto& [number, about] : read_series(series_file_of(path))) gathered.emplace(number, std::move(about));
  const std::uint64_t first = ring.written() - std::min(newest, ring.written() - ring.first());
  std::optional<std::int64_t> first_offset, offset;  // Unix time − monotonic
  for (std::uint64_t i = first; i < ring.written() && !offset; i++) {
    const auto one = ring.record<SampleRecord>(i);
    if (ring.has(i) && one.series == kClockSeries)
      offset = first_offset = static_cast<std::int64_t>(one.value - static_cast<std::uint64_t>(one.monotonic_ns));
  }
  for (std::uint64_t i = first; i < ring.written(); i++) {
    if (!ring.has(i)) continue;
    const auto one = ring.record<SampleRecord>(i);
    if (one.series == kClockSeries) {
      offset = static_cast<std::int64_t>(one.value - static_cast<std::uint64_t>(one.monotonic_ns));
      continue;
    }
    const auto found = gathered.find(one.series);
    std::int64_t t_ns = 0;
    if (found == gathered.end()) {
      out.unknown++;
    } else if (__builtin_add_overflow(one.monotonic_ns, offset.value_or(0), &t_ns) ||
               !found->second.add(t_ns, one.monotonic_ns, one.value)) {
      out.backwards++;
    }
  }
  if (offset && first_offset) __builtin_sub_overflow(*offset, *first_offset, &out.drift_ns);
  for (auto& [number, series] : gathered) {
    if (Series whole = series.take(); !whole.samples.empty()) out.series.push_back(std::move(whole));
  }
  return out;
}

std::vector<std::string> sample_files(const std::string& run_folder) { return telemetry_files(run_folder, ".samples"); }

}  // namespace stepscope::run
