// Work on devices as causes look at it: who launched it, which operators have to do with a device at all, and where
// threads wait for one.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "diagnose/case.h"
#include "model/copy_way.h"

namespace stepscope::diagnose {

// Asking for a copy and going on takes a thread so long.
inline constexpr std::int64_t kAskForCopyNs = 10'000;

// A thread waits in a call until a device has done something.
struct DeviceWait {
  std::uint32_t node = 0;         // what the thread does when it goes on
  std::uint32_t waited_for = 0;   // the device's node
  SliceId call = SliceId::none;   // of the runtime
  SliceId asker = SliceId::none;  // the outermost operator that does little else; none: there is no operator
  bool for_input = false;         // in an operator that copies more than a little to the device
  // Where the wait binds: what the thread then does on the path, until the device has work again, but no more of it
  // than the thread would come earlier without this wait and those before.
  std::vector<std::uint32_t> late;
};

class DeviceWork {
 public:
  explicit DeviceWork(const Case& about);

  // Nodes of device work, by class.
  const std::vector<std::uint32_t>& nodes(DeviceClass wanted) const { return nodes_[static_cast<std::size_t>(wanted)]; }
  // Some of the trace's work on a device is known with its operator, so that of the others it is known that they have
  // none.
  bool is_linked(const Trace& trace) const { return of(trace).linked; }
  // The slice, or something in it, launches work, waits for a device or asks its runtime for anything else.
  bool uses_device(const Trace& trace, SliceId slice) const {
    return of(trace).uses_device[static_cast<std::size_t>(slice)];
  }
  // The thread's node that launches a node of a device; kNone: not recorded.
  std::uint32_t launch_of(std::uint32_t node) const;
  const std::vector<DeviceWait>& waits() const { return waits_; }
  // Of the call that asked for a node of a device, and of others in the same operator: none where it went on.
  std::vector<const DeviceWait*> own_waits(const Case& about, std::uint32_t node) const;

 private:
  struct Of {
    std::vector<bool> uses_device;  // per slice
    bool linked = false;
    std::unordered_map<SliceId, std::vector<std::size_t>> waits_in;  // per innermost operator, else per call
  };
  const Of& of(const Trace& trace) const { return of_.at(&trace); }
  static void find_users(const Trace& trace, Of& out);
  void find_waits(const Case& about);
  void find_waits_for_input(const Case& about);
  const std::vector<std::size_t>& waits_of(const Case& about, std::uint32_t node) const;

  std::vector<std::uint32_t> nodes_[kDeviceClasses];
  std::unordered_map<const Trace*, Of> of_;
  std::unordered_map<std::uint32_t, std::uint32_t> launch_;
  std::vector<DeviceWait> waits_;
};

// Shared by the causes of a case.
const DeviceWork& device_work(const Case& about);

// Outermost operators in which torch's allocator gives memory back to the device: it asked for some, there was none,
// and it asks again. By trace and slice.
using Retries = std::set<std::pair<const Trace*, SliceId>>;
const Retries& allocator_retries(const Case& about);

// Of the devices of a trace: the least compute capability (its first number); 0: not known.
std::int64_t least_capability(const Trace& trace);

// The innermost operator that launched the work of a device's node; none: not known.
SliceId asker_of(const Case& about, std::uint32_t node);
// Its name, else that of the work itself.
std::string_view asker_name(const Case& about, std::uint32_t node, const Work& work);

}  // namespace stepscope::diagnose
