// Networks from files: what people have is read, and what is none is refused with its place.
#include "session/network_file.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace stepscope {
namespace {

struct NetworkFile {
  std::string path = std::filesystem::temp_directory_path() / "stepscope_network.yml";
  explicit NetworkFile(const std::string& text) { std::ofstream(path) << text; }
  ~NetworkFile() { std::remove(path.c_str()); }
  Result<Network> read() const { return session::read_network(path); }
};

TEST_CASE("network file: the lists of ASTRA-sim, with comments, and as JSON") {
  const char* yaml =
      "# two levels\ntopology: [ FullyConnected, Ring ]  # inside first\nnpus_count: [ 8, 4 ]\n"
      "bandwidth: [ 300.0, 25 ]  # GB/s\nlatency: [ 500.0, 5e3 ]  # ns\n";
  const char* json =
      R"({"topology": ["FullyConnected", "Ring"], "npus_count": [8, 4], "bandwidth": [300, 25], "latency": [500, 5000]})";
  for (const char* text : {yaml, json}) {
    const auto network = NetworkFile(text).read();
    REQUIRE(network);
    CHECK(network->dimensions == std::vector<NetworkDimension>{{NetworkShape::fully_connected, 8, 300, 500},
                                                               {NetworkShape::ring, 4, 25, 5000}});
  }
}

TEST_CASE("network file: what is none is refused with its place and what to write") {
  const auto error = [](const char* text) {
    const auto network = NetworkFile(text).read();
    REQUIRE_FALSE(network);
    CHECK(network.error().offset);
    CHECK_FALSE(network.error().hint.empty());
    return network.error().message;
  };
  CHECK(error("") == "there is no topology");
  CHECK(error("topology: [Ring]\nnpus_count: [8]\nbandwidth: [1]\n") == "there is no latency");
  CHECK(error("topology: [Ring]\nnpus_count: [8, 2]\nbandwidth: [1]\nlatency: [1]") ==
        "npus_count has not one value for each dimension");
  CHECK(error("topology: [Mesh]\nnpus_count: [8]\nbandwidth: [1]\nlatency: [1]") ==
        "'Mesh' is none of Ring, FullyConnected, Switch");
  CHECK(error("topology: []\nnpus_count: []\nbandwidth: []\nlatency: []") ==
        "topology has not one value for each dimension");
  CHECK(error("topology: [Ring]\nnpus_count: [0]\nbandwidth: [1]\nlatency: [1]") == "'0' is no number of ranks");
  CHECK(error("topology: [Ring]\nnpus_count: [8]\nbandwidth: [0]\nlatency: [1]") == "'0' is no bandwidth");
  CHECK(error("topology: [Ring]\nnpus_count: [8]\nbandwidth: [nan]\nlatency: [1]") == "'nan' is no bandwidth");
  CHECK(error("topology: [Ring]\nnpus_count: [8]\nbandwidth: [1]\nlatency: [-1]") == "'-1' is no latency");
  CHECK(error("hello: [Ring]") == "'hello' is no key");
  CHECK(error("topology: Ring") == "topology has no list in brackets");
  CHECK(error("topology: [Ring\nnpus_count") == "topology is no list of at most 16 values");
  CHECK(error("topology: [Ring] topology: [Ring]") == "topology stands there twice");
  CHECK(error("[[[[") == "no key stands here");
  CHECK_FALSE(session::read_network("/no/such/file"));
}

}  // namespace
}  // namespace stepscope
