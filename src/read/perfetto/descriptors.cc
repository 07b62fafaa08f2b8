#include "read/perfetto/descriptors.h"

namespace stepscope::read::perfetto {
namespace {

constexpr int kDeepestTrack = 64;  // a hostile file can make circles

bool take_process(std::string_view message, Descriptor& track) {
  track.is_process = true;
  ProtoFields fields(message);
  for (ProtoField field; fields.next(field);) {
    if (field.number == wire::process::pid) track.pid = field.integer();
    if (field.number == wire::process::name) track.process_name = field.bytes;
  }
  return fields.ok();
}

bool take_thread(std::string_view message, Descriptor& track) {
  track.is_thread = true;
  ProtoFields fields(message);
  for (ProtoField field; fields.next(field);) {
    if (field.number == wire::thread::pid) track.pid = field.integer();
    if (field.number == wire::thread::tid) track.tid = field.integer();
    if (field.number == wire::thread::name) track.thread_name = field.bytes;
  }
  return fields.ok();
}

bool take_counter(std::string_view message, Descriptor& track) {
  ProtoFields fields(message);
  for (ProtoField field; fields.next(field);) {
    if (field.number == wire::counter::multiplier && field.value != 0) {
      track.multiplier = static_cast<double>(field.integer());
    }
    if (field.number == wire::counter::incremental) track.incremental = field.value != 0;
  }
  return fields.ok();
}

}  // namespace

bool Descriptors::take(std::string_view message) {
  std::uint64_t uuid = 0;
  Descriptor track;
  bool ok = true;
  ProtoFields fields(message);
  for (ProtoField field; fields.next(field);) {
    switch (field.number) {
      case wire::track::uuid: uuid = field.value; break;
      case wire::track::parent: track.parent = field.value; break;
      case wire::track::static_name:
      case wire::track::name: track.name = field.bytes; break;
      case wire::track::process: ok &= take_process(field.bytes, track); break;
      case wire::track::thread: ok &= take_thread(field.bytes, track); break;
      case wire::track::counter: ok &= take_counter(field.bytes, track); break;
      default: break;
    }
  }
  if (track.is_process && !track.process_name.empty()) process_names_[track.pid] = track.process_name;
  Descriptor& known = all_[uuid];
  track.sum = known.sum;  // writers repeat descriptors
  known = track;
  return ok && fields.ok();
}

double Descriptors::counter_value(std::uint64_t uuid, double told) {
  const auto found = all_.find(uuid);
  if (found == all_.end()) return told;
  Descriptor& counter = found->second;
  if (!counter.incremental) return told * counter.multiplier;
  counter.sum += told;
  return counter.sum * counter.multiplier;
}

// The process is that of the nearest track above that has one. A track that is no thread is a lane of its own, told
// apart by its number.
Track Descriptors::track(std::uint64_t uuid, Texts& texts) const {
  Track track;
  const Descriptor* own = find(uuid);
  track.thread = texts(own != nullptr && own->is_thread ? std::to_string(own->tid) : "track " + std::to_string(uuid));
  if (own == nullptr) return track;
  const std::string_view name = own->thread_name.empty() ? own->name : own->thread_name;
  if (!name.empty()) track.thread_name = texts(name);
  const Descriptor* above = own;
  for (int level = 0; above != nullptr && above->pid == kAbsent && above->parent != 0 && level < kDeepestTrack;
       level++) {
    above = find(above->parent);
  }
  if (above == nullptr || above->pid == kAbsent) return track;
  track.process = texts(std::to_string(above->pid));
  const auto named = process_names_.find(above->pid);
  if (named != process_names_.end()) track.process_name = texts(named->second);
  return track;
}

}  // namespace stepscope::read::perfetto
