#include "model/track_stacks.h"

#include <algorithm>

namespace stepscope {

void visit_stacks(const Trace& trace, std::size_t track, const SliceTest& wanted, const StackVisitor& visitor) {
  struct Open {
    SliceId slice;
    std::int64_t end_ns;
  };
  std::vector<Open> stack;
  const auto close_until = [&](std::int64_t time_ns) {
    while (!stack.empty() && stack.back().end_ns <= time_ns) {
      visitor.close(stack.back().slice, stack.back().end_ns);
      stack.pop_back();
    }
  };
  if (track + 1 >= trace.track_begin.size()) return;
  for (std::uint32_t i = trace.track_begin[track]; i < trace.track_begin[track + 1]; i++) {
    const SliceId slice = trace.by_track[i];
    if (!wanted(trace, slice)) continue;
    const std::int64_t start_ns = trace.slices.start_ns[slice];
    close_until(start_ns);
    const std::int64_t end_ns = trace.slices.end_ns(slice);
    stack.push_back({slice, stack.empty() ? end_ns : std::min(end_ns, stack.back().end_ns)});
    visitor.open(slice, start_ns);
  }
  close_until(INT64_MAX);
}

bool is_host_work(const Trace& trace, SliceId slice) {
  switch (trace.kind(slice)) {
    case SliceKind::cpu_op:
    case SliceKind::user_annotation:
    case SliceKind::python_function:
    case SliceKind::runtime: return true;
    default: return false;
  }
}

std::string track_label(const Trace& trace, std::size_t which) {
  const Track& track = trace.tracks[which];
  const auto named = [&](StringId name, StringId id, std::string_view kind) {
    const std::string number(trace.strings[id]), text(trace.strings[name]);
    if (text.empty()) return std::string(kind) + number;
    return text.find(number) != text.npos ? text : text + " " + number;
  };
  return named(track.process_name, track.process, "process ") + " / " +
         named(track.thread_name, track.thread, track.device ? "stream " : "thread ");
}

}  // namespace stepscope
