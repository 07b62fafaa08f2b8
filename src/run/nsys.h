// nsys, the command line of NVIDIA Nsight Systems, where it is installed: what collect and read share of it.
#pragma once

#include <optional>
#include <string>

namespace stepscope::run {

// The program: from PATH, else the newest of `vendor`/nsight-systems*.
std::optional<std::string> find_nsys(const std::string& vendor = "/opt/nvidia");

// Writes `report` (.nsys-rep) as the SQLite database that read opens; whether that was done.
bool export_report(const std::string& nsys, const std::string& report, const std::string& database);

}  // namespace stepscope::run
