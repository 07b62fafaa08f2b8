// From where to where a copy goes, by the name that profilers give it: "Memcpy HtoD (Pageable -> Device)".
#pragma once

#include <cstdint>
#include <string_view>

namespace stepscope {

struct CopyWay {
  std::string_view direction;            // "HtoD", "DtoH", "DtoD", "PtoP" (between devices), "HtoH"; "": not told
  std::string_view source, destination;  // kind of memory: "Pageable", "Pinned", "Device" …; "": not told

  bool to_device() const { return direction == "HtoD"; }
  bool to_host() const { return direction == "DtoH"; }
  // The driver has to copy it once more, through memory of its own.
  bool pageable() const { return source == "Pageable" || destination == "Pageable"; }
};

// Parts of `name`, which outlives it.
CopyWay copy_way(std::string_view name);

// What the driver takes in without making the caller wait; asking for so little takes as long as moving it.
inline constexpr std::int64_t kSmallCopyBytes = 64 << 10;

}  // namespace stepscope
