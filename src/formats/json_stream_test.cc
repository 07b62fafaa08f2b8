#include "formats/json_stream.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace stepscope::formats {
namespace {

using End = JsonStream::End;

// A text in memory as a file, walked with a window of `window` bytes.
struct Walk {
  explicit Walk(std::string_view text, std::size_t window = 4) : fd(memfd_create("json", MFD_CLOEXEC)) {
    REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    auto opened = TextFile::open("/proc/self/fd/" + std::to_string(fd), 0);
    REQUIRE(opened);
    file.emplace(std::move(*opened));
    in.emplace(*file, window);
  }
  ~Walk() { close(fd); }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  std::vector<std::string> elements() {
    std::vector<std::string> all;
    if (in->enter_array()) {
      while (in->next_element()) all.emplace_back(in->value());
    }
    return all;
  }

  int fd;
  std::optional<TextFile> file;
  std::optional<JsonStream> in;
};

TEST_CASE("json stream: members, elements and values, whatever the window") {
  for (const std::size_t window : {1, 3, 1000}) {
    CAPTURE(window);
    Walk walk(R"(  {"a\u0062": [1, "x]\"\\", {"y": [2]} , -1.5e3,true],"c" : "d", "e":{}} behind)", window);
    std::string key;
    REQUIRE(walk.in->enter_object());
    REQUIRE(walk.in->next_member(key));
    CHECK(key == "ab");
    CHECK(walk.in->offset() == 14);
    CHECK(walk.elements() == std::vector<std::string>{"1", R"("x]\"\\")", R"({"y": [2]})", "-1.5e3", "true"});
    REQUIRE(walk.in->next_member(key));
    CHECK_FALSE(walk.in->enter_array());
    CHECK(walk.in->value() == "\"d\"");
    REQUIRE(walk.in->next_member(key));
    CHECK(key == "e");
    walk.in->skip();
    CHECK_FALSE(walk.in->next_member(key));
    CHECK(walk.in->end() == End::open);
    CHECK(walk.in->offset() == 72);
  }
}

TEST_CASE("json stream: the bytes behind a value may be read") {
  Walk walk("[12", 8);
  REQUIRE(walk.in->enter_array());
  REQUIRE(walk.in->next_element());
  const std::string_view last = walk.in->value();
  REQUIRE(last == "12");
  for (std::size_t i = 0; i < JsonStream::kPadding; i++) CHECK(last.data()[last.size() + i] == ' ');
  CHECK_FALSE(walk.in->next_element());
  CHECK(walk.in->end() == End::cut);
}

TEST_CASE("json stream: a cut is told from what cannot go on") {
  const std::vector<std::string> cuts{"[", "[1", "[1,", "[[1", "[\"a", "[\"a\\", "[{\"a\": 1"};
  for (const std::string& text : cuts) {
    CAPTURE(text);
    Walk walk(text);
    walk.elements();
    CHECK(walk.in->end() == End::cut);
    CHECK(walk.in->offset() == text.size());
  }
  const std::vector<std::string> breaks{"[}", "[1, :", "[,,1]", std::string("[\0]", 3)};
  for (const std::string& text : breaks) {
    CAPTURE(text);
    Walk walk(text);
    walk.elements();
    CHECK(walk.in->end() == End::broken);
  }
  for (const std::string_view text : {"{\"a\"}", "{\"a\": }", "{1: 2}", "{\"a\" 1}"}) {
    CAPTURE(text);
    Walk walk(text);
    std::string key;
    REQUIRE(walk.in->enter_object());
    while (walk.in->next_member(key)) walk.in->skip();
    CHECK(walk.in->end() == End::broken);
  }
}

TEST_CASE("json stream: what is no value ends at the same place, whatever the window") {
  for (const std::size_t window : {4, 1000}) {
    Walk walk("[perations\": [1], 2 \"a, b\", tr\"ue, 3]", window);
    CHECK(walk.elements() == std::vector<std::string>{"perations\":", "[1]", "2", "\"a, b\"", "tr\"ue", "3"});
  }
}

TEST_CASE("json stream: a byte order mark is passed, and any place can be gone on to") {
  Walk walk("\xEF\xBB\xBF[10, {\"a\": 1}]");
  REQUIRE(walk.in->enter_array());
  walk.in->pass_to(8);
  CHECK(walk.in->value() == R"({"a": 1})");
  walk.in->pass_to(1000);
  CHECK(walk.in->value().empty());
}

}  // namespace
}  // namespace stepscope::formats
