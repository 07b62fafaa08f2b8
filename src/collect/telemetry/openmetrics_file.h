// The file of OpenMetrics text (openmetrics.h), as node_exporter's collector of text files reads it: whole at any
// moment, since each time it is written anew as FILE.tmp and renamed.
//
// Whoever writes it holds a lock on it, so that two samplers that were given the same name do not take turns.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/telemetry/sample_file.h"

namespace stepscope::collect::telemetry {

class OpenMetricsFile {
 public:
  OpenMetricsFile(std::string path, std::string job, std::string run_folder)
      : path_(std::move(path)), job_(std::move(job)), run_folder_(std::move(run_folder)) {}
  OpenMetricsFile(const OpenMetricsFile&) = delete;
  OpenMetricsFile& operator=(const OpenMetricsFile&) = delete;
  ~OpenMetricsFile();

  // With how the ranks stand that keep their marks in the run folder.
  void write(std::vector<Newest> sampled);
  std::string problem() const;  // why it was not written the last time; empty: it was

 private:
  Result<void> replace(const std::string& text);
  bool is_others() const;

  std::string path_, job_, run_folder_;
  int held_ = -1;  // the file as it was written last
  mutable std::mutex mutex_;
  std::string problem_;
};

}  // namespace stepscope::collect::telemetry
