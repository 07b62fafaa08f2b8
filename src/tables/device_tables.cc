// Spec of the table of device work: kernels, copies, fills and device-side waits, with what derive knows about them.
#include "tables/table_parts.h"

namespace stepscope::tables {
namespace {

constexpr auto kPart = &Trace::device;

Codes kind() {
  return {[](const Trace& trace, std::size_t row) {
            return static_cast<std::uint32_t>(trace.kind(trace.device.slice[row]));
          },
          [](const Trace&) { return static_cast<std::size_t>(SliceKind::other) + 1; },
          [](const Trace&, std::uint32_t code) { return to_string(static_cast<SliceKind>(code)); }};
}

Codes device_class() {
  return {[](const Trace& trace, std::size_t row) {
            const auto& classes = trace.device.device_class;
            return row < classes.size() && is_device_work(trace.kind(trace.device.slice[row]))
                       ? std::uint32_t{classes[row]}
                       : kNoCode;
          },
          [](const Trace&) { return kDeviceClasses; },
          [](const Trace&, std::uint32_t code) { return to_string(static_cast<DeviceClass>(code)); }};
}

// Family and rule are texts of the class rule that decided; rule 0 means that none did.
std::uint32_t rule_of(const Trace& trace, std::size_t row) {
  const auto& rules = trace.device.rule;
  return row < rules.size() && rules[row] != 0 ? std::uint32_t{rules[row]} : kNoCode;
}

template <auto Member>
Codes rule_text() {
  return {rule_of, [](const Trace& trace) { return trace.class_rules.size(); },
          [](const Trace& trace, std::uint32_t code) { return std::string_view(trace.class_rules[code].*Member); }};
}

Codes phase() {
  return {[](const Trace& trace, std::size_t row) {
            return row < trace.device.phase.size() ? std::uint32_t{trace.device.phase[row]} : kNoCode;
          },
          [](const Trace&) { return kPhases; },
          [](const Trace&, std::uint32_t code) { return to_string(static_cast<Phase>(code)); }};
}

template <int Axis>
BorrowedColumn grid() {
  return [](const Trace& trace) { return borrow(trace.device.grid[Axis], std::uint32_t{0}); };
}
template <int Axis>
BorrowedColumn block() {
  return [](const Trace& trace) { return borrow(trace.device.block[Axis], std::uint32_t{0}); };
}

std::vector<ColumnSpec> as_recorded() {
  return {{"kind", Unit::none, "kernel, memcpy, memset or sync.", kind()},
          {"device", Unit::none, "Device index.", borrowed_or<kPart, &DeviceRows::device, -1>()},
          {"stream", Unit::none, "Stream on the device.", narrow<kPart, &DeviceRows::stream>()},
          {"correlation", Unit::none, "Id shared with the launch.", narrow<kPart, &DeviceRows::correlation>()},
          {"external_id", Unit::none, "Id of the op that launched it.", narrow<kPart, &DeviceRows::external_id>()},
          {"grid_x", Unit::count, "Blocks of the grid, x.", grid<0>()},
          {"grid_y", Unit::count, "Blocks of the grid, y.", grid<1>()},
          {"grid_z", Unit::count, "Blocks of the grid, z.", grid<2>()},
          {"block_x", Unit::count, "Threads of a block, x.", block<0>()},
          {"block_y", Unit::count, "Threads of a block, y.", block<1>()},
          {"block_z", Unit::count, "Threads of a block, z.", block<2>()},
          {"registers", Unit::count, "Registers per thread.",
           borrowed_or<kPart, &DeviceRows::registers, DeviceRows::kNoCount>()},
          {"shared_bytes", Unit::bytes, "Shared memory per block.",
           borrowed_or<kPart, &DeviceRows::shared_bytes, DeviceRows::kNoCount>()},
          {"blocks_per_sm", Unit::none, "Blocks per multiprocessor.", borrowed<kPart, &DeviceRows::blocks_per_sm>()},
          {"warps_per_sm", Unit::none, "Warps per multiprocessor.", borrowed<kPart, &DeviceRows::warps_per_sm>()},
          {"occupancy_percent", Unit::none, "Occupancy in percent, estimated by the profiler.",
           borrowed<kPart, &DeviceRows::occupancy_percent>()},
          {"bytes", Unit::bytes, "Bytes copied or filled.", narrow<kPart, &DeviceRows::bytes>()},
          {"wait_stream", Unit::none, "sync: the stream waited for.", narrow<kPart, &DeviceRows::wait_stream>()},
          {"wait_correlation", Unit::none, "sync: correlation of the event record waited for.",
           narrow<kPart, &DeviceRows::wait_correlation>()}};
}

std::vector<ColumnSpec> as_derived() {
  return {
      {"launch", Unit::none, "Slice of the call that launched it; null: not in the trace.",
       borrowed_id<kPart, &DeviceRows::launch>()},
      {"op", Unit::none, "Slice of the innermost op around the launch; null: unknown.",
       borrowed_id<kPart, &DeviceRows::op>()},
      {"class", Unit::none, "Class of device work; null for waits.", device_class()},
      {"family", Unit::none, "Op family; null: no rule matched.", rule_text<&ClassRule::family>()},
      {"rule", Unit::none, "Rule that decided class and family; see the table rules.", rule_text<&ClassRule::name>()},
      {"step", Unit::none, "Row in the table steps of the step that it belongs to; null: outside all steps.",
       borrowed_id<kPart, &DeviceRows::step>()},
      {"phase", Unit::none, "Phase of the op that launched it.", phase()}};
}

}  // namespace

TableSpec device_work_table() {
  return {"device_work", "What ran on devices: kernels, copies, fills and waits.", rows_of<kPart>,
          slice_columns<kPart, &DeviceRows::slice>() + as_recorded() + as_derived()};
}

}  // namespace stepscope::tables
