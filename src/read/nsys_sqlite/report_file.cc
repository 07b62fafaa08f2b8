#include "read/nsys_sqlite/report_file.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/command_output.h"

namespace stepscope::read::nsys {
namespace {

namespace fs = std::filesystem;

constexpr double kLongestExport = 3600;  // seconds; reports of many GB take minutes

Error no_export(const std::string& report, const std::string& why) {
  const std::string name = fs::path(report).filename().string();
  return {ErrorKind::unsupported, "is an nsys report, which only nsys itself can read" + why, report, std::nullopt,
          "Export it where nsys is installed, then open the .sqlite: nsys export --type sqlite --include-blobs=true " +
              name};
}

}  // namespace

bool is_report(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(kReportMagic.size(), '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == kReportMagic;
}

Result<ExportedReport> ExportedReport::make(const std::string& report) {
  if (!output_of({"nsys", "--version"}, 60)) return fail(no_export(report, ", and there is no nsys on this machine"));
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "stepscope-nsys-XXXXXX").string();
  if (error || mkdtemp(folder.data()) == nullptr) {
    return fail(no_export(report, ", and no temporary folder could be made for its export"));
  }
  ExportedReport out(folder);
  const std::vector<std::string> plain{"nsys", "export", "--type", "sqlite", "-o", out.path(), "--force-overwrite",
                                       "true", "--lazy", "false"};
  // Payloads (message sizes of NCCL) are left out unless asked for; an older nsys does not know the word.
  for (const bool with_payloads : {true, false}) {
    std::vector<std::string> command = plain;
    if (with_payloads) command.emplace_back("--include-blobs=true");
    command.push_back(fs::absolute(report, error).string());
    if (output_of(command, kLongestExport) && fs::exists(out.path(), error)) return out;
  }
  return fail(no_export(report, ", and the nsys on this machine could not export it"));
}

ExportedReport::~ExportedReport() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

}  // namespace stepscope::read::nsys
