// Tracks as another writer describes them: names, processes, threads, and what a track hangs below.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "model/trace.h"
#include "read/perfetto/field_reader.h"
#include "read/perfetto/sequence.h"

namespace stepscope::read::perfetto {

struct Descriptor {
  std::uint64_t parent = 0;
  std::string_view name, process_name, thread_name;
  std::int64_t pid = kAbsent, tid = kAbsent;
  bool is_process = false, is_thread = false;
  // counters
  bool incremental = false;
  double multiplier = 1, sum = 0;
};

class Descriptors {
 public:
  // False: the message is broken.
  bool take(std::string_view message);
  // A counter's value: some are told as what was added since the last one.
  double counter_value(std::uint64_t uuid, double told);
  Track track(std::uint64_t uuid, Texts& texts) const;

 private:
  const Descriptor* find(std::uint64_t uuid) const {
    const auto found = all_.find(uuid);
    return found == all_.end() ? nullptr : &found->second;
  }

  std::unordered_map<std::uint64_t, Descriptor> all_;
  std::unordered_map<std::int64_t, std::string_view> process_names_;
};

}  // namespace stepscope::read::perfetto
