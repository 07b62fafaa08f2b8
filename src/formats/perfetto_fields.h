// Field numbers of Perfetto's trace messages, as far as stepscope writes or reads them (protos/perfetto/trace in
// github.com/google/perfetto). One namespace for each message; numbers of a protobuf field never change.
#pragma once

#include <cstdint>

namespace stepscope::formats::perfetto {

using Field = std::uint32_t;

namespace trace {
inline constexpr Field packet = 1;
}

namespace packet {  // TracePacket
inline constexpr Field clock_snapshot = 6, timestamp = 8, sequence = 10, event = 11, interned = 12, flags = 13;
inline constexpr Field state_cleared = 41, packets_lost = 42, process = 43, thread = 44, compressed = 50;
inline constexpr Field clock = 58, defaults = 59, track = 60, first = 87, zstd = 133;
inline constexpr std::uint64_t cleared = 1, needs_state = 2;  // values of flags
}  // namespace packet

namespace defaults {  // TracePacketDefaults
inline constexpr Field event = 11, clock = 58;
}

namespace snapshot {  // ClockSnapshot and its Clock
inline constexpr Field clocks = 1, primary = 2;
inline constexpr Field id = 1, time = 2, incremental = 3, multiplier = 4;
inline constexpr std::uint64_t realtime = 1, boottime = 6, first_of_sequence = 64, last_of_sequence = 127;
}  // namespace snapshot

namespace interned {  // InternedData; its entries hold iid and text
inline constexpr Field categories = 1, names = 2, annotations = 3, texts = 29;
inline constexpr Field iid = 1, text = 2;
}  // namespace interned

namespace track {  // TrackDescriptor
inline constexpr Field uuid = 1, name = 2, process = 3, thread = 4, parent = 5, counter = 8, static_name = 10;
inline constexpr Field merge = 15, merge_key = 17;
inline constexpr std::uint64_t merge_by_key = 3;
}  // namespace track

namespace process {  // ProcessDescriptor
inline constexpr Field pid = 1, name = 6;
}

namespace thread {  // ThreadDescriptor
inline constexpr Field pid = 1, tid = 2, name = 5;
}

namespace counter {  // CounterDescriptor
inline constexpr Field unit = 3, multiplier = 4, incremental = 5;
inline constexpr std::uint64_t unit_bytes = 3;
}  // namespace counter

namespace event {  // TrackEvent; the defaults of a sequence have the same numbers
inline constexpr Field category_iids = 3, annotations = 4, legacy = 6, type = 9, name_iid = 10, track = 11;
inline constexpr Field extra_values = 12, categories = 22, name = 23, counter_value = 30, extra_tracks = 31;
inline constexpr Field old_flows = 36, old_last_flows = 42, counter_real = 44, extra_real_tracks = 45;
inline constexpr Field extra_reals = 46, flows = 47, last_flows = 48;
inline constexpr std::uint64_t slice_begin = 1, slice_end = 2, instant = 3, counter_sample = 4;  // values of type
}  // namespace event

namespace annotation {  // DebugAnnotation
inline constexpr Field name_iid = 1, boolean = 2, natural = 3, integer = 4, real = 5, text = 6, pointer = 7;
inline constexpr Field json = 9, name = 10, dict = 11, array = 12, text_iid = 17;
}  // namespace annotation

}  // namespace stepscope::formats::perfetto
