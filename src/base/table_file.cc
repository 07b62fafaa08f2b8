#include "base/table_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text_parts.h"

namespace stepscope {
namespace {

Result<void> check(std::span<const std::string_view> found, const TableFormat& format) {
  const auto wrong = [&](std::string message) {
    return fail({ErrorKind::malformed, std::move(message), "", std::nullopt, std::string(format.hint)});
  };
  if (found.size() != format.fields.size()) {
    return wrong("expected " + std::to_string(format.fields.size()) + " fields, found " + std::to_string(found.size()));
  }
  for (std::size_t i = 0; i < found.size(); i++) {
    if (found[i].empty()) return wrong("the " + std::string(format.fields[i]) + " is empty");
  }
  return {};
}

}  // namespace

Result<std::string> read_table(const std::string& path, std::string_view what, std::string_view document) {
  constexpr std::uintmax_t kLargest = 4u << 20;
  const auto refuse = [&](ErrorKind kind, std::string_view why) {
    return fail({kind, "the " + std::string(what) + std::string(why), path, std::nullopt,
                 "name a text file of " + std::string(what) + " (" + std::string(document) + ")"});
  };
  std::error_code code;
  const std::uintmax_t size = std::filesystem::file_size(path, code);
  const bool missing = code == std::errc::no_such_file_or_directory;
  if (code) {
    return refuse(missing ? ErrorKind::not_found : ErrorKind::unreadable, " cannot be read: " + code.message());
  }
  if (size > kLargest) return refuse(ErrorKind::too_large, " are larger than 4 MiB");
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (size > 0) text << in.rdbuf();
  if (!in) return refuse(ErrorKind::unreadable, " cannot be read: " + std::string(std::strerror(errno)));
  return std::move(text).str();
}

Result<void> for_each_row(std::string_view text, const std::string& file, const TableFormat& format,
                          const std::function<Result<void>(std::span<const std::string_view>)>& add) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::size_t number = 0;
  for (const std::string_view line : split(text, "\n")) {
    number++;
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string_view> fields = split(line, "|");
    Result<void> done = check(fields, format);
    if (done) done = add(fields);
    if (done) continue;
    Error error = done.error();
    error.kind = file.empty() ? ErrorKind::internal : ErrorKind::malformed;
    error.message = "line " + std::to_string(number) + ": " + error.message;
    error.file = file;
    if (error.hint.empty()) error.hint = format.hint;
    return fail(std::move(error));
  }
  return {};
}

}  // namespace stepscope
