// Specs of the tables of what lies beside the traces: samples of telemetry, and the marks of the whole job.
#include "tables/table_parts.h"

namespace stepscope::tables {
namespace {

const SampledSeries& series_at(const Trace& trace, std::size_t row) { return trace.sampled[trace.samples.series[row]]; }

template <auto Member>
Codes of_series() {
  return {[](const Trace& trace, std::size_t row) { return trace.samples.series[row]; },
          [](const Trace& trace) { return trace.sampled.size(); },
          [](const Trace& trace, std::uint32_t series) { return std::string_view(trace.sampled[series].*Member); }};
}

Codes marked_phase() {
  return {[](const Trace& trace, std::size_t row) {
            const std::uint8_t phase = trace.slices.phase[row];
            return phase == static_cast<std::uint8_t>(Phase::other) ? kNoCode : phase;
          },
          [](const Trace&) { return kPhases; },
          [](const Trace&, std::uint32_t code) { return to_string(static_cast<Phase>(code)); }};
}

std::int64_t marked_step(const Trace& trace, std::size_t row) {
  const StepId step = trace.step_at(trace.slices.start_ns[row]);
  return step == StepId::none ? kAbsent : trace.steps[static_cast<std::size_t>(step)].number;
}

}  // namespace

TableSpec samples_table() {
  constexpr auto part = &Trace::samples;
  return {"samples",
          "Telemetry: what was sampled of the machine beside the job, on the clock of its steps.",
          rows_of<part>,
          {{"rank", Unit::none, "Rank that it is of; null: of the machine.",
            +[](const Trace& trace, std::size_t row) { return series_at(trace, row).rank.value_or(kAbsent); }},
           {"time_ns", Unit::unix_ns, "When it was read.", borrowed<part, &Samples::time_ns>()},
           {"host", Unit::none, "Machine.", of_series<&SampledSeries::host>()},
           {"target", Unit::none, "Of what: a rank, the host, a device.", of_series<&SampledSeries::target>()},
           {"collector", Unit::none, "Source of the samples.", of_series<&SampledSeries::collector>()},
           {"name", Unit::none, "What was sampled.", of_series<&SampledSeries::name>()},
           {"unit", Unit::none, "Of the value.", of_series<&SampledSeries::unit>()},
           {"value", Unit::none, "The level; of a counter what it grew by since its first sample.",
            borrowed<part, &Samples::value>()},
           {"rate", Unit::none, "Of a counter: per second since the sample before, of ns in cores; else null.",
            borrowed<part, &Samples::rate>()}},
          &Run::telemetry};
}

TableSpec marks_table() {
  constexpr auto part = &Trace::slices;
  return {"marks",
          "Every step and phase of the job, recorded or not, as each rank marked them.",
          rows_of<part>,
          {rank_column(),
           {"step", Unit::none, "Number of the step.", marked_step},
           {"phase", Unit::none, "Phase of the step; null: the step itself.", marked_phase()},
           {"start_ns", Unit::unix_ns, "Start.", borrowed<part, &Slices::start_ns>()},
           {"dur_ns", Unit::ns, "Duration.", narrow<part, &Slices::dur_ns>()}},
          &Run::history};
}

}  // namespace stepscope::tables
