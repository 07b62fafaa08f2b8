// A report in nsys's own format (.nsys-rep). Only nsys can read it: where it is installed, it exports the report into a
// folder of its own under the system's temporary folder, which goes with the object.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace stepscope::read::nsys {

inline constexpr std::string_view kReportMagic = "NVIDIA Tegra Profiler Report";

bool is_report(const std::string& path);

class ExportedReport {
 public:
  static Result<ExportedReport> make(const std::string& report);
  ~ExportedReport();
  ExportedReport(ExportedReport&& other) noexcept : folder_(std::move(other.folder_)) { other.folder_.clear(); }
  ExportedReport& operator=(ExportedReport&&) = delete;

  std::string path() const { return folder_ + "/report.sqlite"; }

 private:
  explicit ExportedReport(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

}  // namespace stepscope::read::nsys
