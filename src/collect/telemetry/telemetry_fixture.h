// For the tests of collectors: trees of files in place of the kernel's, and what a source says of them.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry {

// What a source said last, by "name target".
struct Heard : Sink {
  std::map<std::string, double> values;
  std::map<std::uint32_t, std::string> names;

  std::uint32_t series(const run::SeriesAbout& about) override {
    const auto number = static_cast<std::uint32_t>(names.size() + 1);
    for (const auto& [known, name] : names) {
      if (name == about.name + " " + about.target) return known;
    }
    names[number] = about.name + " " + about.target;
    return number;
  }
  void add(std::uint32_t series, std::int64_t count) override { values[names[series]] = static_cast<double>(count); }
  void add(std::uint32_t series, double level) override { values[names[series]] = level; }
};

inline void put(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::trunc) << text;
}

inline std::unique_ptr<Source> opened(std::string_view name, const Roots& roots) {
  for (const Collector& collector : collectors()) {
    if (collector.name != name) continue;
    auto source = collector.open(roots);
    REQUIRE_MESSAGE(source, (source ? "" : to_text(source.error())));
    return std::move(*source);
  }
  FAIL("no collector of that name");
  return nullptr;
}

// What a collector says of why it is not there; "" where it is.
inline std::string why_absent(std::string_view name, const Roots& roots) {
  for (const Collector& collector : collectors()) {
    if (collector.name != name) continue;
    const auto source = collector.open(roots);
    return source ? "" : to_text(source.error());
  }
  FAIL("no collector of that name");
  return "";
}

}  // namespace stepscope::collect::telemetry
