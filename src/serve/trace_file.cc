#include "serve/trace_file.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace stepscope::serve {

std::optional<std::uint64_t> given_bytes(const Trace& trace) {
  const Source& source = trace.source;
  const bool known = source.format == "chrome_trace" || source.format == "perfetto";
  if (!known || !source.parts.empty() || source.file_bytes > kMostTraceBytes) return std::nullopt;
  return source.file_bytes;
}

Result<std::string> trace_file(const Trace& trace) {
  if (!given_bytes(trace)) {
    return fail({ErrorKind::unsupported, "this recording cannot be given away as one file", "", std::nullopt,
                 "Make one: stepscope convert PATH --to perfetto -o FILE"});
  }
  std::error_code error;
  const bool same = std::filesystem::is_regular_file(trace.source.path, error) &&
                    std::filesystem::file_size(trace.source.path, error) == trace.source.file_bytes;
  std::string bytes(same ? trace.source.file_bytes : 0, '\0');
  std::ifstream file(trace.source.path, std::ios::binary);
  if (bytes.empty() || !file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    return fail({ErrorKind::changed, "the file of this rank is not any more what was opened", "", std::nullopt,
                 "Reload the page when the run was opened anew"});
  }
  return bytes;
}

}  // namespace stepscope::serve
