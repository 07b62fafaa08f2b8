#include "run/schema_version.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <filesystem>

namespace stepscope::run {
namespace {

constexpr std::uintmax_t kLargestManifest = 64 << 20;  // notes of some ten thousand ranks

}  // namespace

std::optional<std::int64_t> stated_schema_version(const std::string& path) {
  std::error_code code;
  const std::uintmax_t size = std::filesystem::file_size(path, code);
  if (code || size > kLargestManifest) return std::nullopt;
  simdjson::dom::parser parser;
  std::int64_t version = 0;
  if (parser.load(path)["schema_version"].get(version) != simdjson::SUCCESS) return std::nullopt;
  return version;
}

std::string newer_schema(const std::string& file, std::int64_t found, int known) {
  return fmt::format("{} has schema_version {}, this stepscope knows {}: what is new in it is left out", file, found,
                     known);
}

}  // namespace stepscope::run
