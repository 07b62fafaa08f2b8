#include "session/changes.h"

#include <doctest/doctest.h>

#include <string>

using namespace stepscope;
using namespace stepscope::session;

TEST_CASE("changes: what is written is read again") {
  for (const char* text :
       {"scale kernel:gemm=0.5", "remove op:aten::sort", "move op:a=b=120us", "fuse kernel:elementwise", "dataloader 0",
        "no-waits", "level-rank 3", "bandwidth 2", "ranks 64", "overlap-comm"}) {
    CAPTURE(text);
    const auto changes = read_changes(text);
    REQUIRE(changes.has_value());
    REQUIRE(changes->size() == 1);
    CHECK(change_text(changes->front()) == text);
  }
}

TEST_CASE("changes: lines, dashes, blanks and order") {
  const auto changes = read_changes("\n  --ranks 8\r\n\nbandwidth   2\n--no-waits\n remove host:a name with blanks \n");
  REQUIRE(changes.has_value());
  std::string text;
  for (const Change& change : *changes) text += change_text(change) + "\n";
  CHECK(text == "remove host:a name with blanks\nno-waits\nbandwidth 2\nranks 8\n");
  CHECK(read_changes(" \n ")->empty());
  CHECK(change_text(read_changes("--scale 'kernel:gemm=0.5'")->front()) == "scale kernel:gemm=0.5");
}

TEST_CASE("changes: what cannot be meant says how it is written") {
  const auto refused = [](std::string_view text) {
    const auto changes = read_changes(text);
    REQUIRE(!changes.has_value());
    CHECK(changes.error().kind == ErrorKind::usage);
    return changes.error().message + ". " + changes.error().hint;
  };
  CHECK(refused("scale kernel:gemm") == "'kernel:gemm' is not TARGET=VALUE. Write scale kernel:gemm=0.5");
  CHECK(refused("scale kernel:gemm=fast") == "'fast' is no number. Write scale kernel:gemm=0.5");
  CHECK(refused("move op:x=5") == "'5' is no duration with its unit. Write move op:aten::topk=120us");
  CHECK(refused("no-waits 3") == "'no-waits' takes no value. Write no-waits");
  CHECK(refused("ranks many") == "'many' is no whole number. Write ranks 64");
  CHECK(refused("remove") == "'remove' does not say of what, or how much. Write remove op:aten::sort");
  CHECK(refused("ranks 64 --topology network.yml")
            .starts_with("a topology is a file, which is taken on the command line"));
  CHECK(refused("topology network.yml").find("stepscope what-if PATH --ranks 64 --topology network.yml") !=
        std::string::npos);
  CHECK(read_change("ranks", "many").error().hint == "Write --ranks 64");  // the option of the command line
  CHECK(refused("speed up").starts_with("'speed' is no change. Changes are: scale, remove, move"));
}
