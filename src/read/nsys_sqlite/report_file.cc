#include "read/nsys_sqlite/report_file.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "run/nsys.h"

namespace stepscope::read::nsys {
namespace {

namespace fs = std::filesystem;

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
  const auto nsys = run::find_nsys();
  if (!nsys) return fail(no_export(report, ", and there is no nsys on this machine"));
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "stepscope-nsys-XXXXXX").string();
  if (error || mkdtemp(folder.data()) == nullptr) {
    return fail(no_export(report, ", and no temporary folder could be made for its export"));
  }
  ExportedReport out(folder);
  if (run::export_report(*nsys, fs::absolute(report, error).string(), out.path())) return out;
  return fail(no_export(report, ", and the nsys on this machine could not export it"));
}

ExportedReport::~ExportedReport() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

}  // namespace stepscope::read::nsys
