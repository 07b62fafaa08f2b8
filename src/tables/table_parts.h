// Accessors from which the table specs are put together. Each names a part of the Trace and a column of that part:
// narrow<&Trace::ops, &Ops::sequence>().
#pragma once

#include "tables/table_spec.h"

namespace stepscope::tables {

template <auto Part>
std::size_t rows_of(const Trace& trace) {
  return (trace.*Part).size();
}

// Zero-copy; every row has a value (NaN of a real column is null).
template <auto Part, auto Member>
BorrowedColumn borrowed() {
  return [](const Trace& trace) { return borrow((trace.*Part).*Member); };
}

// Zero-copy; the id `none` is null.
template <auto Part, auto Member>
BorrowedColumn borrowed_id() {
  return [](const Trace& trace) {
    const auto& column = (trace.*Part).*Member;
    using Id = typename std::remove_cvref_t<decltype(column)>::value_type;
    return borrow(column, Id::none);
  };
}

// Zero-copy; the value Absent is null.
template <auto Part, auto Member, auto Absent>
BorrowedColumn borrowed_or() {
  return [](const Trace& trace) {
    const auto& column = (trace.*Part).*Member;
    using Number = typename std::remove_cvref_t<decltype(column)>::value_type;
    return borrow(column, static_cast<Number>(Absent));
  };
}

template <auto Part, auto Member>
IntegerAt narrow() {
  return [](const Trace& trace, std::size_t row) { return ((trace.*Part).*Member)[row]; };
}

// A column of StringIds; StringId::none is null.
template <auto Part, auto Member>
Codes pooled() {
  return {[](const Trace& trace, std::size_t row) { return static_cast<std::uint32_t>(((trace.*Part).*Member)[row]); },
          [](const Trace& trace) { return trace.strings.size(); },
          [](const Trace& trace, std::uint32_t code) { return trace.strings[static_cast<StringId>(code)]; }};
}

// A column of CategoryIds.
template <auto Part, auto Member>
Codes category() {
  return {[](const Trace& trace, std::size_t row) {
            const CategoryId id = ((trace.*Part).*Member)[row];
            return id == CategoryId::none ? kNoCode : static_cast<std::uint32_t>(id);
          },
          [](const Trace& trace) { return trace.categories.size(); },
          [](const Trace& trace, std::uint32_t code) { return trace.strings[trace.categories[code].name]; }};
}

// A text of the track that a column of TrackIds names: a StringId member of Track.
template <auto Part, auto Member, auto Text>
Codes track_text() {
  return {[](const Trace& trace, std::size_t row) {
            const auto track = static_cast<std::size_t>(((trace.*Part).*Member)[row]);
            return track < trace.tracks.size() ? static_cast<std::uint32_t>(trace.tracks[track].*Text) : kNoCode;
          },
          [](const Trace& trace) { return trace.strings.size(); },
          [](const Trace& trace, std::uint32_t code) { return trace.strings[static_cast<StringId>(code)]; }};
}

// For tables whose rows belong to a slice (a column `slice`): what the slice says.
template <auto Part>
Codes slice_name() {
  return {[](const Trace& trace, std::size_t row) {
            return static_cast<std::uint32_t>(trace.slices.name[(trace.*Part).slice[row]]);
          },
          [](const Trace& trace) { return trace.strings.size(); },
          [](const Trace& trace, std::uint32_t code) { return trace.strings[static_cast<StringId>(code)]; }};
}
template <auto Part>
IntegerAt slice_start() {
  return [](const Trace& trace, std::size_t row) { return trace.slices.start_ns[(trace.*Part).slice[row]]; };
}
template <auto Part>
IntegerAt slice_dur() {
  return [](const Trace& trace, std::size_t row) { return trace.slices.dur_ns[(trace.*Part).slice[row]]; };
}

inline ColumnSpec rank_column() {
  return {"rank", Unit::none, "Rank of the file that the row comes from.",
          +[](const Trace& trace, std::size_t) { return trace.rank.rank; }, Order::constant};
}

// The first columns of tables whose rows belong to a slice.
template <auto Part, auto Member>
std::vector<ColumnSpec> slice_columns() {
  return {rank_column(),
          {"slice", Unit::none, "Row of the slice in the table slices of the same rank.", borrowed<Part, Member>(),
           Order::ascending},
          {"name", Unit::none, "Name of the slice.", slice_name<Part>()},
          {"start_ns", Unit::ns, "Start of the slice.", slice_start<Part>()},
          {"dur_ns", Unit::ns, "Duration of the slice.", slice_dur<Part>()}};
}

inline std::vector<ColumnSpec> operator+(std::vector<ColumnSpec> columns, std::vector<ColumnSpec> more) {
  columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}

// The number of the row in its trace, by which other tables refer to it.
inline ColumnSpec row_number_column(std::string_view name, std::string_view meaning) {
  return {name, Unit::none, meaning, +[](const Trace&, std::size_t row) { return static_cast<std::int64_t>(row); },
          Order::row_number};
}

// One function per table; model_tables() lists them.
TableSpec slices_table();
TableSpec ops_table();
TableSpec launches_table();
TableSpec device_work_table();
TableSpec collectives_table();
TableSpec memory_events_table();
TableSpec flows_table();
TableSpec instants_table();
TableSpec counters_table();
TableSpec nodes_table();
TableSpec node_dependencies_table();
TableSpec steps_table();
TableSpec modules_table();
TableSpec backward_table();
TableSpec tracks_table();
TableSpec samples_table();
TableSpec marks_table();
TableSpec snapshot_events_table();
TableSpec snapshot_allocations_table();
TableSpec snapshot_held_table();
TableSpec snapshot_segments_table();
TableSpec snapshot_blocks_table();
TableSpec snapshot_frames_table();
TableSpec snapshot_annotations_table();
TableSpec memory_timeline_table();

}  // namespace stepscope::tables
