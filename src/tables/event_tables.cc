// Specs of the tables of things that happen at one time, of steps and of tracks; and the list of all tables.
#include "tables/table_parts.h"

#include <array>

namespace stepscope::tables {
namespace {

Codes step_name() {
  return {[](const Trace&, std::size_t row) { return static_cast<std::uint32_t>(row); },
          [](const Trace& trace) { return trace.steps.size(); },
          [](const Trace& trace, std::uint32_t code) { return std::string_view(trace.steps[code].name); }};
}

Codes flow_phase() {
  return {[](const Trace& trace, std::size_t row) {
            const char phase = trace.flows.phase[row];
            return phase == 's' ? 0u : phase == 't' ? 1u : phase == 'f' ? 2u : kNoCode;
          },
          [](const Trace&) { return std::size_t{3}; },
          [](const Trace&, std::uint32_t code) {
            static constexpr std::array<std::string_view, 3> names{"start", "step", "end"};
            return names[code];
          }};
}

template <auto Member>
Codes own_text() {
  return {[](const Trace& trace, std::size_t row) { return static_cast<std::uint32_t>(trace.tracks[row].*Member); },
          [](const Trace& trace) { return trace.strings.size(); },
          [](const Trace& trace, std::uint32_t code) { return trace.strings[static_cast<StringId>(code)]; }};
}

template <auto Member>
IntegerAt step_time() {
  return [](const Trace& trace, std::size_t row) { return trace.steps[row].*Member; };
}

constexpr std::string_view kTrackMeaning = "Row in the table tracks of the same rank.";

}  // namespace

TableSpec memory_events_table() {
  constexpr auto part = &Trace::memory;
  return {"memory_events",
          "Allocator events, where the recording has them.",
          rows_of<part>,
          {rank_column(),
           {"time_ns", Unit::ns, "Time on the file's clock.", borrowed<part, &MemoryEvents::time_ns>()},
           {"track", Unit::none, kTrackMeaning, borrowed_id<part, &MemoryEvents::track>()},
           {"bytes", Unit::bytes, "Bytes allocated; negative: freed.", narrow<part, &MemoryEvents::bytes>()},
           {"address", Unit::none, "Address as a signed 64-bit number.", borrowed<part, &MemoryEvents::address>()},
           {"total_allocated", Unit::bytes, "Allocated afterwards.", narrow<part, &MemoryEvents::total_allocated>()},
           {"total_reserved", Unit::bytes, "Reserved afterwards.", narrow<part, &MemoryEvents::total_reserved>()},
           {"device_type", Unit::none, "torch's device type: 0 CPU, 1 CUDA.",
            borrowed_or<part, &MemoryEvents::device_type, -1>()},
           {"device_index", Unit::none, "Device index; null: not given.",
            borrowed_or<part, &MemoryEvents::device_index, -1>()}}};
}

TableSpec flows_table() {
  constexpr auto part = &Trace::flows;
  return {"flows",
          "Arrows between tracks as recorded, one row per end.",
          rows_of<part>,
          {rank_column(),
           {"time_ns", Unit::ns, "Time on the file's clock.", borrowed<part, &Flows::time_ns>()},
           {"id", Unit::none, "Id that the ends share.", narrow<part, &Flows::id>()},
           {"track", Unit::none, kTrackMeaning, borrowed_id<part, &Flows::track>()},
           {"category", Unit::none, "Category as recorded.", category<part, &Flows::category>()},
           {"end", Unit::none, "start, step or end of the arrow.", flow_phase()}}};
}

TableSpec instants_table() {
  constexpr auto part = &Trace::instants;
  return {"instants",
          "Events without a duration.",
          rows_of<part>,
          {rank_column(),
           {"time_ns", Unit::ns, "Time on the file's clock.", borrowed<part, &Instants::time_ns>()},
           {"name", Unit::none, "Name as recorded.", pooled<part, &Instants::name>()},
           {"category", Unit::none, "Category as recorded.", category<part, &Instants::category>()},
           {"track", Unit::none, kTrackMeaning, borrowed_id<part, &Instants::track>()}}};
}

TableSpec counters_table() {
  constexpr auto part = &Trace::counters;
  return {"counters",
          "Values of counters over time.",
          rows_of<part>,
          {rank_column(),
           {"time_ns", Unit::ns, "Time on the file's clock.", borrowed<part, &Counters::time_ns>()},
           {"name", Unit::none, "Name of the counter.", pooled<part, &Counters::name>()},
           {"key", Unit::none, "Name of the value in the counter.", pooled<part, &Counters::key>()},
           {"track", Unit::none, kTrackMeaning, borrowed_id<part, &Counters::track>()},
           {"value", Unit::none, "The value.", borrowed<part, &Counters::value>()}}};
}

TableSpec steps_table() {
  return {"steps",
          "Steps of the program, by start.",
          rows_of<&Trace::steps>,
          {rank_column(),
           row_number_column("step", "Number of the row in its rank."),
           {"name", Unit::none, "Name of the step.", step_name()},
           {"number", Unit::none, "Number of the step as recorded.", step_time<&Step::number>()},
           {"start_ns", Unit::ns, "Start on the host.", step_time<&Step::start_ns>()},
           {"end_ns", Unit::ns, "End on the host.", step_time<&Step::end_ns>()},
           {"device_end_ns", Unit::ns, "End of the device work that it launched.", step_time<&Step::device_end_ns>()},
           {"track", Unit::none, kTrackMeaning,
            +[](const Trace& trace, std::size_t row) {
              const TrackId track = trace.steps[row].track;
              return track == TrackId::none ? kAbsent : static_cast<std::int64_t>(track);
            }},
           {"partial", Unit::none, "Cut by the edge of the recording.",
            +[](const Trace& trace, std::size_t row) { return trace.steps[row].partial; }}}};
}

TableSpec tracks_table() {
  return {"tracks",
          "Lanes of slices: threads of processes and streams of devices.",
          rows_of<&Trace::tracks>,
          {rank_column(),
           row_number_column("track", "Number of the row in its rank."),
           {"process", Unit::none, "Process as recorded (pid).", own_text<&Track::process>()},
           {"thread", Unit::none, "Thread as recorded (tid); on a device the stream.", own_text<&Track::thread>()},
           {"process_name", Unit::none, "Name of the process, where given.", own_text<&Track::process_name>()},
           {"thread_name", Unit::none, "Name of the thread, where given.", own_text<&Track::thread_name>()},
           {"sort_index", Unit::none, "Place that the writer wants it at.",
            +[](const Trace& trace, std::size_t row) { return trace.tracks[row].sort_index; }},
           {"device", Unit::none, "Holds device work, device waits or mirrored annotations.",
            +[](const Trace& trace, std::size_t row) { return trace.tracks[row].device; }}}};
}

std::span<const TableSpec> model_tables() {
  static const std::array all{slices_table(),
                              ops_table(),
                              launches_table(),
                              device_work_table(),
                              collectives_table(),
                              memory_events_table(),
                              flows_table(),
                              instants_table(),
                              counters_table(),
                              nodes_table(),
                              node_dependencies_table(),
                              steps_table(),
                              modules_table(),
                              backward_table(),
                              tracks_table(),
                              samples_table(),
                              marks_table(),
                              snapshot_events_table(),
                              snapshot_allocations_table(),
                              snapshot_held_table(),
                              snapshot_segments_table(),
                              snapshot_blocks_table(),
                              snapshot_frames_table(),
                              snapshot_annotations_table(),
                              memory_timeline_table()};
  return all;
}

}  // namespace stepscope::tables
