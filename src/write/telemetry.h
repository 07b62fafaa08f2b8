// What was sampled beside the job as counter tracks of the traces: for formats that hold counters.
#pragma once

#include <string>

#include "model/trace.h"

namespace stepscope::write {

// Adds Run::telemetry to the counters of the traces, on their clocks: counters as rates in their rate_unit, each from
// the sample before, gauges as levels. What is of a rank goes to the process that did its work, all else to a process
// "machine HOST" of the first trace from there. Only what was sampled while the traces were recorded is taken, with the
// sample before and the one after: a run may have lasted for days.
//
// Returns a sentence on what could not be placed; empty: nothing.
std::string add_telemetry(Run& run);

}  // namespace stepscope::write
