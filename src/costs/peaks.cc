#include "costs/peaks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <span>

#include "base/table_file.h"
#include "base/text_parts.h"
#include "model/element_types.h"

namespace stepscope::costs {
namespace {

// "NVIDIA A100-SXM4-80GB" → nvidia, a100, sxm4, 80gb.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  bool within = false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = std::isalnum(byte) != 0;
    if (letter && !within) words.emplace_back();
    if (letter) words.back() += static_cast<char>(std::tolower(byte));
    within = letter;
  }
  return words;
}

bool positive(std::string_view text, double& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(out) && out > 0;
}

const TableFormat kFormat{{"name", "bandwidth", "list of peaks", "source"},
                          "write NAME | GB/s | TYPE TFLOP/s, TYPE TFLOP/s | SOURCE on one line, such as "
                          "My GPU | 900 | float32 14, float16 112 | data sheet (docs/flops.md)"};

// Torch's names, and those of several of its types together.
bool is_peak_type(std::string_view name) {
  constexpr std::array<std::string_view, 4> kOthers{"tfloat32", "float8", "float4", "int4"};
  return element_bytes(name).has_value() || std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
}

Result<DevicePeaks> parse_row(std::span<const std::string_view> row) {
  const auto refuse = [](std::string message) {
    return fail({ErrorKind::malformed, std::move(message), "", std::nullopt, ""});
  };
  DevicePeaks out{.words = words_of(row[0]), .source = std::string(row[3])};
  if (out.words.empty()) return refuse("the name has no letter and no digit");
  if (!positive(row[1], out.gb_per_s)) return refuse("'" + std::string(row[1]) + "' is no bandwidth in GB/s");
  for (const std::string_view one : split(row[2], ",")) {
    const std::size_t space = one.find(' ');
    double value = 0;
    if (space == one.npos || !positive(trimmed(one.substr(space)), value)) {
      return refuse("'" + std::string(one) + "' is no element type and its TFLOP/s");
    }
    const std::string type(one.substr(0, space));
    if (!is_peak_type(type))
      return refuse("'" + type + "' is no element type: write float32, tfloat32, bfloat16, float8 …");
    if (out.flop_per_s(type)) return refuse("a second peak of " + type);
    out.tflop_per_s.emplace_back(type, value);
  }
  return out;
}

}  // namespace

std::optional<double> DevicePeaks::flop_per_s(std::string_view type) const {
  const auto fits = [&](const auto& peak) {
    return peak.first == type || (type.starts_with(peak.first) && type.substr(peak.first.size()).starts_with('_'));
  };
  const auto found = std::find_if(tflop_per_s.begin(), tflop_per_s.end(), fits);
  return found == tflop_per_s.end() ? std::nullopt : std::optional<double>(found->second * 1e12);
}

Result<std::vector<DevicePeaks>> parse_peaks(std::string_view text, const std::string& file) {
  std::vector<DevicePeaks> table;
  Result<void> done = for_each_row(text, file, kFormat, [&](std::span<const std::string_view> row) -> Result<void> {
    Result<DevicePeaks> peaks = parse_row(row);
    if (!peaks) return fail(peaks.error());
    table.push_back(*std::move(peaks));
    return {};
  });
  if (!done) return fail(done.error());
  return table;
}

const DevicePeaks* peaks_of(const std::vector<DevicePeaks>& table, std::string_view device) {
  const std::vector<std::string> words = words_of(device);
  const auto stands = [&](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const auto found = std::find_if(table.begin(), table.end(), [&](const DevicePeaks& peaks) {
    if (peaks.words.size() == 1 && peaks.words.front() == "any") return true;
    return !words.empty() && std::all_of(peaks.words.begin(), peaks.words.end(), stands);
  });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace stepscope::costs
