// Cache of opened traces: reopening an unchanged file maps what the last opening derived instead of reading again.
//
// One file per trace in the user's cache folder, named by a hash of the key: path, device, inode, size, modification
// time, a hash of sampled blocks of the content, the class rules and the build. A file is used only if its whole
// checksum fits; a damaged one is removed and the trace is read again. Safe to delete at any time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/trace.h"

namespace stepscope::session {

class Cache {
 public:
  // Where and how much, from STEPSCOPE_CACHE (off, or a folder), STEPSCOPE_CACHE_MAX_MB, XDG_CACHE_HOME and HOME.
  // `enabled` false (--no-cache) switches it off.
  static Cache from_environment(bool enabled);

  bool enabled() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }

  // The key of a file; empty when the file cannot be looked at. `rules` is the content of the user's class rules.
  std::string key(const std::string& path, const std::string& rules) const;
  std::optional<Trace> load(const std::string& key) const;
  // Keeps `trace`; removes the files longest unused while the folder is over its limit. Failures are silent: a cache
  // that cannot be written costs time, not results.
  void store(const std::string& key, const Trace& trace) const;

 private:
  std::string path_of(const std::string& key) const;
  void evict() const;

  std::string folder_;  // empty: off
  std::uint64_t max_bytes_ = 0;
};

// Traces with less text than this are read faster than they are looked up.
inline constexpr std::uint64_t kCacheMinTextBytes = 16 << 20;

}  // namespace stepscope::session
