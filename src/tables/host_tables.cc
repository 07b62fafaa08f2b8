// Specs of the tables about slices and what hosts did: slices, ops, launches, collectives, modules, backward.
#include "tables/table_parts.h"

namespace stepscope::tables {
namespace {

Codes kind_of_slice() {
  return {[](const Trace& trace, std::size_t row) {
            return static_cast<std::uint32_t>(trace.kind(static_cast<SliceId>(row)));
          },
          [](const Trace&) { return static_cast<std::size_t>(SliceKind::other) + 1; },
          [](const Trace&, std::uint32_t code) { return to_string(static_cast<SliceKind>(code)); }};
}

Codes phase_of_slice() {
  return {[](const Trace& trace, std::size_t row) {
            return row < trace.slices.phase.size() ? std::uint32_t{trace.slices.phase[row]} : kNoCode;
          },
          [](const Trace&) { return kPhases; },
          [](const Trace&, std::uint32_t code) { return to_string(static_cast<Phase>(code)); }};
}

}  // namespace

TableSpec slices_table() {
  constexpr auto part = &Trace::slices;
  return {"slices",
          "Everything that lasts: operators, calls, kernels, annotations, in file order.",
          rows_of<part>,
          {rank_column(),
           row_number_column("slice", "Number of the slice in its rank; parent and the other tables refer to it."),
           {"start_ns", Unit::ns, "Start on the file's clock.", borrowed<part, &Slices::start_ns>()},
           {"dur_ns", Unit::ns, "Duration.", narrow<part, &Slices::dur_ns>()},
           {"name", Unit::none, "Name as recorded.", pooled<part, &Slices::name>()},
           {"category", Unit::none, "Category as recorded.", category<part, &Slices::category>()},
           {"kind", Unit::none, "What the slice is, from its category.", kind_of_slice()},
           {"track", Unit::none, "Row in the table tracks of the same rank.", borrowed_id<part, &Slices::track>()},
           {"process", Unit::none, "Process as recorded (pid).", track_text<part, &Slices::track, &Track::process>()},
           {"thread", Unit::none, "Thread as recorded (tid); on a device the stream.",
            track_text<part, &Slices::track, &Track::thread>()},
           {"parent", Unit::none, "Slice that encloses this one on its track; null: none.",
            borrowed_id<part, &Slices::parent>()},
           {"depth", Unit::none, "Number of slices that enclose this one.", borrowed<part, &Slices::depth>()},
           {"phase", Unit::none, "Phase of the step that the slice belongs to.", phase_of_slice()}}};
}

TableSpec ops_table() {
  constexpr auto part = &Trace::ops;
  return {"ops", "Operators and annotations that carry profiler ids.", rows_of<part>,
          slice_columns<part, &Ops::slice>() +
              std::vector<ColumnSpec>{
                  {"external_id", Unit::none, "Id that launches of this op carry.", narrow<part, &Ops::external_id>()},
                  {"record_function_id", Unit::none, "Id of the record_function call.",
                   narrow<part, &Ops::record_function_id>()},
                  {"sequence", Unit::none, "Autograd sequence number.", narrow<part, &Ops::sequence>()},
                  {"fwd_thread", Unit::none, "Thread that ran the forward op; 0 in forward ops.",
                   narrow<part, &Ops::fwd_thread>()},
                  {"input_dims", Unit::none, "Shapes of the inputs as JSON text.", pooled<part, &Ops::input_dims>()},
                  {"input_types", Unit::none, "Types of the inputs as JSON text.", pooled<part, &Ops::input_types>()},
                  {"concrete_inputs", Unit::none,
                   "Values of the inputs that are no tensors as JSON text, a text for each input.",
                   pooled<part, &Ops::concrete_inputs>()},
                  {"call_stack", Unit::none, "Python stack, where recorded.", pooled<part, &Ops::call_stack>()}}};
}

TableSpec launches_table() {
  constexpr auto part = &Trace::launches;
  return {"launches", "Calls of the device's runtime or driver that carry a correlation id.", rows_of<part>,
          slice_columns<part, &Launches::slice>() +
              std::vector<ColumnSpec>{
                  {"correlation", Unit::none, "Id shared with the device work it started.",
                   narrow<part, &Launches::correlation>()},
                  {"external_id", Unit::none, "Id of the op around it.", narrow<part, &Launches::external_id>()}}};
}

TableSpec collectives_table() {
  constexpr auto part = &Trace::collectives;
  return {
      "collectives", "Communication calls with their recorded metadata.", rows_of<part>,
      slice_columns<part, &Collectives::slice>() +
          std::vector<ColumnSpec>{
              {"collective", Unit::none, "Kind of collective as recorded.", pooled<part, &Collectives::kind>()},
              {"dtype", Unit::none, "Element type as recorded.", pooled<part, &Collectives::dtype>()},
              {"in_elements", Unit::count, "Elements sent.", narrow<part, &Collectives::in_elements>()},
              {"out_elements", Unit::count, "Elements received.", narrow<part, &Collectives::out_elements>()},
              {"group_size", Unit::count, "Ranks in the process group.", narrow<part, &Collectives::group_size>()},
              {"group_name", Unit::none, "Process group.", pooled<part, &Collectives::group_name>()},
              {"group_ranks", Unit::none, "Ranks of the group as recorded.", pooled<part, &Collectives::group_ranks>()},
              {"sequence", Unit::none, "Number of the collective in its group.",
               narrow<part, &Collectives::sequence>()},
              {"peer", Unit::none, "Send and receive: the other rank.", narrow<part, &Collectives::peer>()},
              {"in_split", Unit::none, "Elements sent to each rank as JSON text, where they differ.",
               pooled<part, &Collectives::in_split>()},
              {"out_split", Unit::none, "Elements received from each rank as JSON text, where they differ.",
               pooled<part, &Collectives::out_split>()}}};
}

TableSpec modules_table() {
  return {
      "modules",
      "Calls of nn.Module ranges on host threads.",
      rows_of<&Trace::modules>,
      {rank_column(),
       {"slice", Unit::none, "Row of the slice in the table slices of the same rank.",
        +[](const Trace& trace, std::size_t row) { return static_cast<std::int64_t>(trace.modules[row].slice); }},
       {"name", Unit::none, "Name of the module.",
        Codes{[](const Trace& trace, std::size_t row) { return static_cast<std::uint32_t>(trace.modules[row].name); },
              [](const Trace& trace) { return trace.strings.size(); },
              [](const Trace& trace, std::uint32_t code) { return trace.strings[static_cast<StringId>(code)]; }}},
       {"class", Unit::none, "Class of the module, where recorded.",
        Codes{[](const Trace& trace, std::size_t row) { return static_cast<std::uint32_t>(trace.modules[row].type); },
              [](const Trace& trace) { return trace.strings.size(); },
              [](const Trace& trace, std::uint32_t code) { return trace.strings[static_cast<StringId>(code)]; }}},
       {"start_ns", Unit::ns, "Start of the call.",
        +[](const Trace& trace, std::size_t row) { return trace.slices.start_ns[trace.modules[row].slice]; }},
       {"dur_ns", Unit::ns, "Duration of the call.",
        +[](const Trace& trace, std::size_t row) { return trace.slices.dur_ns[trace.modules[row].slice]; }}}};
}

TableSpec backward_table() {
  return {
      "backward",
      "Forward operators and the backward operators that belong to them.",
      rows_of<&Trace::backward>,
      {rank_column(),
       {"forward", Unit::none, "Slice of the forward op.",
        +[](const Trace& trace, std::size_t row) { return static_cast<std::int64_t>(trace.backward[row].forward); }},
       {"backward", Unit::none, "Slice of the backward op.",
        +[](const Trace& trace, std::size_t row) { return static_cast<std::int64_t>(trace.backward[row].backward); }}}};
}

}  // namespace stepscope::tables
