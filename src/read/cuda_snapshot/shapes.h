// The shapes of dicts in a snapshot: which keys each has, and by which one it is known.
#pragma once

#include "read/cuda_snapshot/words.h"

namespace stepscope::read::cuda {

enum class Shape : std::uint8_t { event, frame, segment, block, past, annotation, root, setting, list, count };

struct ShapeKeys {
  std::string_view name;           // for messages
  std::uint64_t known_by = 0;      // one of them tells the shape; the first shape that matches counts
  std::uint64_t all = 0;           // more are counted as unknown
  std::uint64_t needed = 0;        // without them a row says little: counted as missing
  std::uint64_t lacking_once = 0;  // older versions of torch did not write them: a note only
};

inline constexpr std::array<ShapeKeys, static_cast<std::size_t>(Shape::count)> kShapes{{
    {"event", keys(Word::action),
     keys(Word::action, Word::addr, Word::device_free, Word::size, Word::stream, Word::time_us, Word::frames,
          Word::forward_frames, Word::compile_context, Word::user_metadata, Word::pool_id, Word::category),
     keys(Word::size, Word::stream), keys(Word::time_us)},
    {"frame", keys(Word::filename),
     keys(Word::filename, Word::name, Word::line, Word::fx_node_op, Word::fx_node_name, Word::fx_node_target,
          Word::fx_original_trace, Word::fx_node_info),
     keys(Word::name, Word::line), 0},
    {"segment", keys(Word::blocks, Word::total_size),
     keys(Word::device, Word::address, Word::total_size, Word::allocated_size, Word::active_size, Word::requested_size,
          Word::stream, Word::segment_type, Word::segment_pool_id, Word::is_expandable, Word::registration_counter,
          Word::frames, Word::blocks),
     keys(Word::device, Word::address, Word::total_size, Word::blocks), 0},
    {"block", keys(Word::state),
     keys(Word::address, Word::size, Word::requested_size, Word::state, Word::frames, Word::history), keys(Word::size),
     0},
    {"past allocation", keys(Word::real_size), keys(Word::addr, Word::real_size, Word::frames), 0, 0},
    {"annotation", keys(Word::stage), keys(Word::stage, Word::name, Word::device, Word::time_us),
     keys(Word::name, Word::time_us), 0},
    {"snapshot", 0, keys(Word::segments, Word::device_traces, Word::allocator_settings, Word::external_annotations), 0,
     0},
    {"setting", 0, 0, 0, 0},
    {"list", 0, 0, 0, 0},
}};

constexpr const ShapeKeys& keys_of(Shape shape) { return kShapes[static_cast<std::size_t>(shape)]; }

// Shape::root: none of the others.
constexpr Shape shape_of(std::uint64_t present) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(Shape::root); i++) {
    if (kShapes[i].known_by & present) return static_cast<Shape>(i);
  }
  return Shape::root;
}

}  // namespace stepscope::read::cuda
