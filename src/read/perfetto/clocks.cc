#include "read/perfetto/clocks.h"

#include <vector>

namespace stepscope::read::perfetto {

bool Clocks::take_snapshot(std::string_view message, std::uint64_t sequence) {
  std::vector<Clock> clocks;
  bool ok = true;
  ProtoFields fields(message);
  for (ProtoField field; fields.next(field);) {
    if (field.number == wire::snapshot::primary && field.value != 0) trace_clock_ = field.value;
    if (field.number != wire::snapshot::clocks || field.type != WireType::bytes) continue;
    Clock& clock = clocks.emplace_back();
    ProtoFields parts(field.bytes);
    for (ProtoField part; parts.next(part);) {
      if (part.number == wire::snapshot::id) clock.id = part.value;
      if (part.number == wire::snapshot::time) clock.time = part.value;
      if (part.number == wire::snapshot::incremental) clock.incremental = part.value != 0;
      if (part.number == wire::snapshot::multiplier && part.value != 0) clock.multiplier = part.value;
    }
    ok &= parts.ok();
  }
  // The moment on the trace's clock: told here, or by a clock that is known from before.
  std::optional<std::uint64_t> moment;
  for (const Clock& clock : clocks) {
    if (clock.id == trace_clock_) moment = clock.time * clock.multiplier;
  }
  for (std::size_t i = 0; i < clocks.size() && !moment; i++) {
    const auto known = relations_.find(key(clocks[i].id, sequence));
    if (known == relations_.end() || known->second.incremental) continue;
    moment = clocks[i].time * clocks[i].multiplier - known->second.clock_ns + known->second.trace_ns;
  }
  if (!moment) return ok && fields.ok();
  for (const Clock& clock : clocks) {
    if (clock.id == trace_clock_) continue;
    relations_[key(clock.id, sequence)] = {clock.time * clock.multiplier, *moment, clock.multiplier, clock.incremental};
  }
  return ok && fields.ok();
}

std::optional<std::uint64_t> Clocks::time_ns(std::uint64_t clock, std::uint64_t sequence, std::uint64_t time) {
  if (clock == 0 || clock == trace_clock_) return time;
  const auto known = relations_.find(key(clock, sequence));
  if (known == relations_.end()) return std::nullopt;
  Relation& relation = known->second;
  std::uint64_t clock_ns = time * relation.multiplier;
  if (relation.incremental) {
    clock_ns += relation.clock_ns;
    relation.trace_ns += clock_ns - relation.clock_ns;
    relation.clock_ns = clock_ns;
    return relation.trace_ns;
  }
  return clock_ns - relation.clock_ns + relation.trace_ns;
}

}  // namespace stepscope::read::perfetto
