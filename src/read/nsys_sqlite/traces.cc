#include "read/nsys_sqlite/traces.h"

#include <algorithm>
#include <limits>

namespace stepscope::read::nsys {

TraceBuilder::TraceBuilder(const Export& file, std::int64_t process)
    : TraceRows(file.file().path()), file_(file), process_(process), strings_(file.strings(), StringId::none) {}

StringId TraceBuilder::string(std::int64_t string_id) {
  const std::size_t index = file_.string_index(string_id);
  if (index == std::string::npos) return StringId::none;
  StringId& known = strings_[index];
  if (known == StringId::none) known = text(file_.string_at(index));
  return known;
}

TrackId TraceBuilder::host_track(std::int64_t global_tid, std::string_view suffix) {
  if (suffix.empty() && global_tid == last_tid_ && last_thread_ != TrackId::none) return last_thread_;
  const auto [at, fresh] = tracks_.try_emplace(std::to_string(global_tid) + std::string(suffix), TrackId::none);
  if (fresh) {
    const bool known = global_tid != kAbsent;
    Track track;
    track.process = text(known ? std::to_string(pid_of(global_tid)) : "");
    track.thread = text((known ? std::to_string(tid_of(global_tid)) : "") + std::string(suffix));
    at->second = add_track(track);
    if (known) host_tracks_.push_back({global_tid, std::string(suffix), at->second});
  }
  if (suffix.empty()) {
    last_tid_ = global_tid;
    last_thread_ = at->second;
  }
  return at->second;
}

void TraceBuilder::finish(const std::unordered_map<std::int64_t, std::string>& process_names,
                          const std::unordered_map<std::int64_t, std::int64_t>& thread_names) {
  for (const HostTrack& host : host_tracks_) {
    Track& track = trace.tracks[static_cast<std::size_t>(host.track)];
    const auto process = process_names.find(process_of(host.global_tid));
    if (process != process_names.end()) track.process_name = text(process->second);
    const auto thread = thread_names.find(host.global_tid);
    if (thread == thread_names.end()) continue;
    track.thread_name = text(std::string(file_.string(thread->second)) + host.suffix);
  }
  note_repaired_texts();
}

TraceBuilder& Traces::with_device_work(std::int64_t global_pid) {
  const std::int64_t process = process_of(global_pid);
  const auto [at, fresh] = by_process_.try_emplace(process, builders_.size());
  if (fresh) builders_.push_back(std::make_unique<TraceBuilder>(file_, process));
  return *builders_[at->second];
}

void Traces::settle() {
  std::erase_if(builders_, [&](const auto& builder) {
    if (builder->trace.device.size() > 0) return false;
    for (Issue& issue : builder->trace.issues) add_issue(file_.issues, std::move(issue));
    return true;
  });
  by_process_.clear();
  const auto lowest = [](const TraceBuilder& builder) {
    const auto devices = builder.trace.device.device.span();
    return devices.empty() ? std::numeric_limits<std::int32_t>::max()
                           : *std::min_element(devices.begin(), devices.end());
  };
  std::stable_sort(builders_.begin(), builders_.end(), [&](const auto& a, const auto& b) {
    return std::pair(lowest(*a), a->process()) < std::pair(lowest(*b), b->process());
  });
  for (std::size_t i = 0; i < builders_.size(); i++) by_process_[builders_[i]->process()] = i;
}

TraceBuilder& Traces::first() {
  if (builders_.empty()) builders_.push_back(std::make_unique<TraceBuilder>(file_, kAbsent));
  return *builders_.front();
}

TraceBuilder& Traces::of(std::int64_t global) {
  const auto found = by_process_.find(process_of(global));
  return found == by_process_.end() ? first() : *builders_[found->second];
}

TraceBuilder& Traces::of_device(std::int64_t device) {
  for (const auto& builder : builders_) {
    const auto devices = builder->trace.device.device.span();
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) return *builder;
  }
  return first();
}

}  // namespace stepscope::read::nsys
