// What sources count becomes series that never fall; lines of files of any length.
#include "collect/telemetry/kept_series.h"

#include <limits>
#include "base/temp_fixture.h"
#include "collect/telemetry/lines.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

Growth growth(Counting counting) { return Growth({"c", "n", "t", "count", run::SeriesKind::gauge, ""}, counting); }

struct Last : Sink {
  double value = -1;
  std::uint32_t series(const run::SeriesAbout&) override { return 1; }
  void add(std::uint32_t, std::int64_t count) override { value = static_cast<double>(count); }
  void add(std::uint32_t, double level) override { value = level; }
};

// -1: nothing was said.
double after(Growth& series, std::initializer_list<std::int64_t> counts) {
  Last heard;
  for (const std::int64_t count : counts) series.add(heard, count);
  return heard.value;
}

struct Times : Heard {
  int added = 0;
  void add(std::uint32_t series, std::int64_t count) override { added++, Heard::add(series, count); }
  void add(std::uint32_t series, double level) override { added++, Heard::add(series, level); }
};

}  // namespace

TEST_CASE("telemetry: a counter grows over wrap-around, a reset, a small fall and numbers out of reach") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Growth plain = growth({4, 0, 0});
  CHECK(after(plain, {1000, 1010}) == 40);
  CHECK(after(plain, {3, 5}) == 48);  // was set back to 3
  CHECK(after(plain, {-1}) == -1);
  Growth wraps = growth({1, 1000, 0});
  CHECK(after(wraps, {990, 5}) == 15);
  CHECK(after(wraps, {2000, 7}) == 2010);  // 1995 on, and a fall from beyond the range is a reset
  Growth shaky = growth({1, 0, 10});
  CHECK(after(shaky, {100, 95, 99, 101}) == 1);
  CHECK(after(shaky, {50, 51}) == 2);
  Growth huge = growth({1000, 0, 0});
  CHECK(after(huge, {0, kMost, 0, 7}) == 7000);  // what does not fit is left out
  Growth full = growth({1, 0, 0});
  CHECK(after(full, {0, kMost, 0, 5}) == static_cast<double>(kMost));
  Growth other = growth({});
  CHECK(after(other, {100, 110}) == 10);
  other.begin_anew();
  CHECK(after(other, {500, 501}) == 11);
}

TEST_CASE("telemetry: what seldom changes has a sample where it did, and now and then") {
  Times heard;
  Growth series = growth({});
  for (int i = 0; i < 21; i++) series.add_seldom(heard, 5);
  CHECK(heard.added == 3);
  series.add_seldom(heard, 6);
  CHECK(heard.added == 4);
  CHECK(heard.values["n t"] == 1);
  Level level({"c", "l", "t", "count", run::SeriesKind::counter, ""});
  for (int i = 0; i < 10; i++) level.add_seldom(heard, 2);
  CHECK(heard.added == 5);
  level.add_seldom(heard, 2);
  level.add_seldom(heard, 3);
  CHECK(heard.added == 7);
}

TEST_CASE("telemetry: lines of long files, of lines longer than any buffer, and without an end") {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 20000; i++) text += "line " + std::to_string(i) + "\n";
  text += std::string(200000, 'x') + "\nnext\nlast";
  put(folder.path() / "long", text);
  KeptFile file((folder.path() / "long").string());
  std::size_t bytes = 0;
  std::string last;
  std::vector<std::string> tail;
  const std::size_t lines = for_each_line(file, [&](std::string_view line) {
    bytes = std::max(bytes, line.size());
    last = line;
    if (line == "line 19999" || line == "next") tail.emplace_back(line);
  });
  CHECK(lines == 20003);
  CHECK(bytes == 64 << 10);
  CHECK(last == "last");
  CHECK(tail.size() == 2);
  KeptFile none((folder.path() / "none").string());
  CHECK(for_each_line(none, [](std::string_view) {}) == 0);
  std::string_view words = "  a bc\t\n d ";
  CHECK(next_word(words) == "a");
  CHECK(next_word(words) == "bc");
  CHECK(next_word(words) == "d");
  CHECK(next_word(words).empty());
  CHECK(next_word(words).empty());
}

}  // namespace stepscope::collect::telemetry
