// What is drawn: every node, or the ways in which names were reached, and whatever a file says of callers.
#include "graph/drawn_graph.h"

#include <doctest/doctest.h>

#include <string>

#include "model/node_graph.h"

namespace stepscope::graph {
namespace {

struct Made {
  Run run;
  NodeGraph nodes;

  Made() : nodes((run.traces.emplace_back(), run.traces.back())) {}
  void add(std::int64_t id, std::string_view name, std::int64_t parent = kAbsent, std::vector<std::int64_t> waits = {},
           std::int64_t dur_ns = kAbsent) {
    nodes.add({.id = id, .name = name, .parent = parent, .dur_ns = dur_ns, .depends_on = std::move(waits)});
  }
  DrawnGraph draw(std::size_t most) {
    nodes.finish();
    return draw_graph(run, most);
  }
};

std::uint64_t total(const DrawnGraph& drawn) {
  std::uint64_t sum = 0;
  for (const DrawnBox& box : drawn.boxes) sum += box.nodes + box.inside;
  return sum;
}

// `layers` modules of an mm and a relu each, called by a root; each relu waits for its mm.
Made network(std::int64_t layers) {
  Made made;
  made.add(1, "root", kAbsent, {}, 1000);
  for (std::int64_t layer = 0; layer < layers; layer++) {
    made.add(10 * layer + 11, "layer", 1, {}, 30);
    made.add(10 * layer + 12, "mm", 10 * layer + 11, {}, 20);
    made.add(10 * layer + 13, "relu", 10 * layer + 11, {10 * layer + 12});
  }
  return made;
}

TEST_CASE("drawn graph: every node has its box where they fit, with its caller and what it waits for") {
  Made made = network(2);
  const DrawnGraph drawn = made.draw(7);
  REQUIRE(drawn.boxes.size() == 7);
  CHECK_FALSE(drawn.collapsed());
  CHECK(drawn.boxes[0].parent == kNoBox);
  CHECK(drawn.boxes[3].name == "relu");
  CHECK(drawn.boxes[3].parent == 1);
  CHECK(drawn.boxes[3].id == 13);
  CHECK(drawn.boxes[3].timed == 0);
  CHECK(drawn.boxes[1].dur_ns == 30);
  REQUIRE(drawn.arrows.size() == 2);
  CHECK(drawn.arrows[0].from == 2);
  CHECK(drawn.arrows[0].to == 3);
}

TEST_CASE("drawn graph: of too many nodes those that were called the same way share a box") {
  Made made = network(100);
  const DrawnGraph drawn = made.draw(10);
  REQUIRE(drawn.boxes.size() == 4);  // root, layer, mm, relu
  CHECK(drawn.collapsed());
  CHECK(drawn.nodes == 301);
  CHECK(drawn.boxes[1].nodes == 100);
  CHECK(drawn.boxes[2].dur_ns == 2000);
  CHECK(drawn.boxes[2].timed == 100);
  CHECK(drawn.boxes[3].timed == 0);
  REQUIRE(drawn.arrows.size() == 1);
  CHECK(drawn.arrows[0].waits == 100);
}

TEST_CASE("drawn graph: of too many ways the smallest are part of their caller, and small roots share the last box") {
  Made made = network(100);
  for (std::int64_t id = 5000; id < 5050; id++) made.add(id, "lone " + std::to_string(id), kAbsent, {12});
  const DrawnGraph drawn = made.draw(4);
  REQUIRE(drawn.boxes.size() == 4);
  CHECK(drawn.boxes[2].name == "mm");
  CHECK(drawn.boxes[1].inside == 100);  // the relus
  CHECK(drawn.boxes[3].others);
  CHECK(drawn.boxes[3].nodes == 50);
  CHECK(total(drawn) == 351);
  CHECK(drawn.waits_inside == 0);
  CHECK(drawn.arrows.size() == 2);  // layers, where the relus are now, and the lone ones wait for mm
}

TEST_CASE("drawn graph: one box holds everything") {
  Made made = network(3);
  const DrawnGraph drawn = made.draw(1);
  REQUIRE(drawn.boxes.size() == 1);
  CHECK(total(drawn) == 10);
  CHECK(drawn.arrows.empty());
  CHECK(drawn.waits_inside == 3);
}

TEST_CASE("drawn graph: circles of callers are cut, missing callers and dependencies left out") {
  for (const std::size_t most : {100, 2}) {
    CAPTURE(most);
    Made made;
    made.add(1, "a", 3);
    made.add(2, "b", 1);
    made.add(3, "c", 2, {3, 99});
    made.add(4, "d", 77);
    const DrawnGraph drawn = made.draw(most);
    CHECK(total(drawn) == 4);
    for (std::size_t box = 0; box < drawn.boxes.size(); box++) {
      if (drawn.boxes[box].parent != kNoBox) CHECK(drawn.boxes[box].parent < box);
    }
    CHECK(drawn.waits_inside == 1);  // of itself
  }
}

TEST_CASE("drawn graph: the thinnest of too many arrows are left out, and counted") {
  Made made;
  for (std::int64_t id = 1; id <= 20; id++) {
    std::vector<std::int64_t> waits;
    for (std::int64_t other = 1; other < id; other++) waits.push_back(other);
    if (id == 20) waits.insert(waits.end(), {7, 7, 7});
    made.add(id, "n" + std::to_string(id), kAbsent, std::move(waits));
  }
  const DrawnGraph drawn = made.draw(20);
  CHECK(drawn.arrows.size() == 80);
  CHECK(drawn.arrows[0].waits == 4);
  CHECK(drawn.waits_omitted == 190 - 80);
}

TEST_CASE("drawn graph: calls a million deep") {
  Made made;
  constexpr std::int64_t kDeep = 1'000'000;
  for (std::int64_t id = 1; id <= kDeep; id++) made.add(id, "f", id == kDeep ? kAbsent : id + 1);
  const DrawnGraph drawn = made.draw(5);
  CHECK(drawn.boxes.size() == 5);
  CHECK(total(drawn) == kDeep);
}

TEST_CASE("drawn graph: ranks are not mixed, names are the same in both") {
  Run run;
  run.traces.resize(2);
  for (Trace& trace : run.traces) {
    NodeGraph nodes(trace);
    trace.rank.rank = &trace - run.traces.data();
    for (std::int64_t id = 1; id < 50; id++) nodes.add({.id = id, .name = "op"});
    nodes.finish();
  }
  const DrawnGraph drawn = draw_graph(run, 10);
  REQUIRE(drawn.boxes.size() == 2);
  CHECK(drawn.graphs == 2);
  CHECK(drawn.boxes[1].rank == 1);
  CHECK(drawn.boxes[1].nodes == 49);
}

}  // namespace
}  // namespace stepscope::graph
