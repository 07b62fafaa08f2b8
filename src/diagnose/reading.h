// What a rank reads from disks while it makes steps, as far as that was sampled.
#pragma once

#include <cstdint>
#include <optional>

#include "diagnose/case.h"

namespace stepscope::diagnose {

struct Reading {
  double bytes_per_step = 0;    // that block devices read for the rank and its workers
  std::optional<double> share;  // of what system calls read; nullopt: nothing, as of files that are mapped into memory
  double some = 0, all = 0;     // of the time: some, or all work stood still for devices
};

// nullopt: too little to matter, or it was not sampled.
const std::optional<Reading>& reading(const Case& about);

// On the path: the data loader, and the program's own reads.
std::int64_t waits_for_files_ns(const Case& about);

// Disks are behind most of these waits.
bool waits_for_disks(const Case& about);

}  // namespace stepscope::diagnose
