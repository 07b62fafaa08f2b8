#include "collect/telemetry/probe.h"

#include <chrono>
#include <memory>

#include "collect/telemetry/lane.h"

namespace stepscope::collect::telemetry {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);

std::optional<Error> why_absent(const Collector& collector, const std::shared_ptr<Lane>& lane,
                                Lane::Clock::time_point deadline) {
  if (!lane->is_open_by(deadline)) {
    lane->leave_by(deadline);
    const char* const who =
        collector.own_thread ? "the driver does not answer" : "a file of the system does not answer";
    return Error{ErrorKind::unreadable, who, {}, {}, "See why in dmesg"};
  }
  lane->leave_by(Lane::Clock::now() + kPatience);
  std::vector<Absent> absent = lane->absent();
  return absent.empty() ? std::nullopt : std::optional(std::move(absent.front().why));
}

}  // namespace

std::vector<Probe> probe(std::span<const Collector> which, const Roots& roots) {
  std::vector<std::shared_ptr<Lane>> lanes;
  for (const Collector& collector : which) {
    const auto lane = lanes.emplace_back(std::make_shared<Lane>(nullptr, roots));
    lane->add(collector, Lane::kOnlyOpened);
    Lane::begin(lane);
  }
  const auto deadline = Lane::Clock::now() + kPatience;
  std::vector<Probe> out;
  for (std::size_t i = 0; i < which.size(); i++) out.push_back({which[i], why_absent(which[i], lanes[i], deadline)});
  return out;
}

}  // namespace stepscope::collect::telemetry
