// Texts of a drawing: valid whatever names hold, and every box in its place.
#include "write/drawing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "write/drawing/layout.h"
#include "write/drawing/texts.h"

namespace stepscope::write::drawing {
namespace {

using graph::DrawnGraph;
using graph::kNoBox;

const std::string kOdd = std::string("a\"b\\N<i>&amp;\n\x1b[31m\xff") + "\xef\xbf\xbe";

DrawnGraph odd() {
  DrawnGraph drawn;
  drawn.boxes = {{.name = kOdd, .nodes = 1},
                 {.parent = 0, .name = "", .nodes = 3, .inside = 2, .timed = 2, .dur_ns = 1500}};
  drawn.arrows = {{0, 1, 2}};
  drawn.nodes = 6;
  drawn.graphs = 1;
  return drawn;
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 && c != '\n'; });
}

TEST_CASE("drawing: names in Graphviz's language are text, not its escapes and entities") {
  const std::string text = dot_text(odd());
  CHECK(text.find("label=\"a\\\"b\\\\N<i>&amp;amp; ") != text.npos);
  CHECK_FALSE(has_control(text));
  CHECK(text.find("(no name)\\n3 nodes + 2 inside, 1.50 µs of 2") != text.npos);
  CHECK(text.find("n0 -> n1 [style=dashed") != text.npos);
}

TEST_CASE("drawing: names in GraphML and JSON") {
  const std::string xml = graphml_text(odd());
  CHECK(xml.find("a&quot;b\\N&lt;i&gt;&amp;amp; ") != xml.npos);
  CHECK_FALSE(has_control(xml));
  CHECK(xml.find("\xef\xbf\xbe") == xml.npos);  // U+FFFE is no character of XML
  CHECK(xml.find("<data key=\"dur_ns\">1500</data>") != xml.npos);
  const std::string json = json_text(odd());
  CHECK(json.find(R"(a\"b\\N<i>&amp; )") != json.npos);
  CHECK_FALSE(has_control(json));
}

TEST_CASE("drawing: a name of a megabyte is cut in the middle") {
  const std::string name = "begin" + std::string(1 << 20, 'x') + "end";
  DrawnGraph drawn;
  drawn.boxes = {{.name = name, .nodes = 1}};
  drawn.nodes = 1;
  for (const std::string& text : {dot_text(drawn), graphml_text(drawn), json_text(drawn)}) {
    CHECK(text.size() < 4000);
    CHECK(text.find("begin") != text.npos);
    CHECK(text.find("end") != text.npos);
  }
}

TEST_CASE("drawing: boxes do not lie on each other, and callers stand left of what they call") {
  DrawnGraph drawn;
  drawn.boxes.push_back({.name = "root", .nodes = 1});
  for (std::uint32_t i = 1; i < 200; i++) drawn.boxes.push_back({.parent = (i - 1) / 3, .name = "box", .nodes = 1});
  drawn.boxes.push_back({.name = "second root", .nodes = 1});
  const std::vector<Label> labels(drawn.boxes.size(), {"some name", "2 nodes"});
  const std::vector<Place> places = lay_out(drawn, labels);
  REQUIRE(places.size() == 201);
  for (std::size_t i = 0; i < places.size(); i++) {
    const std::uint32_t parent = drawn.boxes[i].parent;
    if (parent != kNoBox) CHECK(places[parent].right() < places[i].left);
    for (std::size_t k = 0; k < i; k++) {
      const bool beside = places[k].right() <= places[i].left || places[i].right() <= places[k].left;
      const double apart = places[i].middle > places[k].middle ? places[i].middle - places[k].middle
                                                               : places[k].middle - places[i].middle;
      CHECK((beside || apart >= places[i].height));
    }
  }
}

TEST_CASE("drawing: the format is what is asked for, else what the file is called") {
  CHECK(drawing_format("", "a/x.svg") == DrawingFormat::svg);
  CHECK(drawing_format("", "x.gv") == DrawingFormat::dot);
  CHECK(drawing_format("", "x.graphml.gz") == DrawingFormat::graphml);
  CHECK(drawing_format("json", "-") == DrawingFormat::json);
  for (const char* bad : {"x", "x.png", "-", "x.svg.gz", "", ".gz", "a.dot/x"}) {
    CAPTURE(bad);
    const auto refused = drawing_format("", bad);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::usage);
  }
}

}  // namespace
}  // namespace stepscope::write::drawing
