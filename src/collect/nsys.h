// `stepscope run --nsys`: NVIDIA Nsight Systems records the job in place of torch.profiler.
//
// Both read the GPU through CUPTI, which serves one of them. The hooks tell nsys when, by cudaProfilerStart and Stop,
// and what, by NVTX ranges (hooks/_stepscope_hooks/nvtx.py).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collect/collect.h"
#include "collect/settings.h"

namespace stepscope::collect {

// The program; the error says what to do without one.
Result<std::string> nsys_program();

// Words as a shell parts them, with quotes: "-s cpu --session-new 'a b'". The options that stepscope itself needs are
// refused.
Result<Arguments> parse_nsys_options(std::string_view text);

// `job` under nsys. Of our own options those are left out that settings.nsys_options say otherwise.
Arguments nsys_command(const std::string& nsys, const Settings& settings, const std::string& run_folder,
                       const Arguments& job);

// Exports the reports that nsys left in the run folder, each beside itself; a sentence for each that could not be.
std::vector<std::string> export_reports(const std::string& nsys, const std::string& run_folder);

}  // namespace stepscope::collect
