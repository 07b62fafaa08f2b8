// Network: what joins the ranks of a job, from the inside out: the GPUs of a machine, the machines of a rack, the
// racks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepscope {

enum class NetworkShape : std::uint8_t {
  ring,             // every rank to the next
  fully_connected,  // every rank to every other
  switched,         // all to one switch
};

struct NetworkDimension {
  NetworkShape shape = NetworkShape::ring;
  std::int64_t ranks = 1;   // how many of what is inside it
  double bytes_per_ns = 0;  // of one rank, in one direction; GB/s
  double latency_ns = 0;    // of one hop

  friend bool operator==(const NetworkDimension&, const NetworkDimension&) = default;
};

struct Network {
  std::string name;  // of its file
  std::vector<NetworkDimension> dimensions;

  friend bool operator==(const Network&, const Network&) = default;
};

}  // namespace stepscope
