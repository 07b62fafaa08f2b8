// The walk over the packets of a file: which sequence each belongs to, what it teaches, and the events in them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/trace.h"
#include "read/perfetto/clocks.h"
#include "read/perfetto/defects.h"
#include "read/perfetto/descriptors.h"
#include "read/perfetto/rank.h"

namespace stepscope::read::perfetto {

// The parts of a packet that are looked at.
struct Packet {
  std::uint64_t time = 0, clock = 0, sequence = 0;
  bool has_time = false, cleared = false;
  std::string_view interned, defaults, event, track, snapshot;
  bool has_event = false;
  std::uint32_t other = 0;  // the field of data that is no track event

  // False: the message is broken.
  bool read(std::string_view message);
};

class PacketReader {
 public:
  // `text` has to live until finish().
  explicit PacketReader(std::string_view text) : text_(text) {}

  void read();
  // Instead of making traces of the events, hands them out.
  using TakeEvent = std::function<void(std::uint64_t place, const Event& event, const Sequence& sequence)>;
  void read_events(const TakeEvent& take);
  std::uint64_t packets() const { return packets_; }
  // The traces, one at least, and what was wrong as issues of the first.
  std::vector<Trace> finish(const std::string& path);

 private:
  using TakePacket = std::function<void(const Packet& packet, std::uint64_t place, Sequence& sequence)>;
  void each_packet(const TakePacket& take);
  Sequence& learn(const Packet& packet, std::uint64_t place);
  void take_event(const Packet& packet, std::uint64_t place, Sequence& sequence);
  bool take_about(const Sequence& sequence, std::uint64_t place);
  RankReader& rank_of(std::uint64_t sequence);
  void report_foreign(Trace& trace, const std::string& path) const;
  void report_ranks(Trace& trace, std::int64_t told, const std::string& path) const;

  std::string_view text_;
  std::unordered_map<std::uint64_t, Sequence> sequences_;
  std::vector<std::unique_ptr<RankReader>> ranks_;  // in the order of their first packets
  std::unordered_map<std::uint64_t, RankReader*> own_;
  RankReader* foreign_ = nullptr;
  Descriptors descriptors_;
  Clocks clocks_;
  Defects defects_;
  Event event_;
  std::uint64_t packets_ = 0;
  struct Unread {
    std::uint64_t count = 0, place = 0;
  };
  std::map<std::uint32_t, Unread> unread_;  // packets of other data, by field
};

}  // namespace stepscope::read::perfetto
