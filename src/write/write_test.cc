// Writers: what was written is read back as the same model (chrome, merge), or adds up to what the trace holds.
#include <doctest/doctest.h>
#include <simdjson.h>
#include <sys/stat.h>

#include <sstream>
#include <thread>

#include "base/temp_fixture.h"
#include "model/track_stacks.h"
#include "write/write_fixture.h"

namespace stepscope::write {

using namespace corpus_fixture;

TEST_CASE("write: a link stays a link, and what is no file is written to") {
  const TempFolder folder;
  const Run run = opened(trace("tiny_cpu.json"));
  folder.put("real.txt", "before");
  fs::create_symlink(folder / "real.txt", folder / "link.txt");
  REQUIRE(writer("folded").write(run, folder / "link.txt", {}));
  CHECK(fs::is_symlink(folder / "link.txt"));
  CHECK(whole_file(folder / "real.txt").find("aten::mm") != std::string::npos);
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::string read;
  std::thread reader([&] { read = whole_file(folder / "pipe"); });
  REQUIRE(writer("folded").write(run, folder / "pipe", {}));
  reader.join();
  CHECK(read == whole_file(folder / "real.txt"));
  CHECK(fs::is_fifo(folder / "pipe"));
}

TEST_CASE("write: chrome is read back as the same model, plain and gzip") {
  const TempFolder folder;
  for (const std::string& path : traces()) {
    CAPTURE(path);
    Run run = opened(path);
    run.traces.resize(1);  // the others are of merge
    run.traces[0].rank.source = RankSource::distributed_info;
    for (const char* name : {"out.json", "out.json.gz"}) {
      REQUIRE(writer("chrome").write(run, folder / name, {}));
      check_same(run, opened(folder / name));
    }
    const std::string text = whole_file(folder / "out.json");
    simdjson::dom::parser parser;
    CHECK_EQ(parser.parse(text).error(), simdjson::SUCCESS);
    CHECK_LT(whole_file(folder / "out.json.gz").size(), text.size() / 2);
  }
}

TEST_CASE("write: what operators were given comes back from every format that can hold it") {
  const TempFolder folder;
  folder.put("in.json", R"({"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::convolution", "pid": 1, "tid": 2, "ts": 3, "dur": 4, "args": {
     "Input Dims": [[8, 3], []], "Input type": ["float", ""], "Concrete Inputs": ["", "[1, 1]"]}}]})");
  const Run run = opened(folder / "in.json");
  for (const char* format : {"chrome", "perfetto"}) {
    REQUIRE(writer(format).write(run, folder / format, {}));
    const Trace back = std::move(opened(folder / format).traces[0]);
    CHECK_EQ(back.strings[back.ops.concrete_inputs[0]], R"(["", "[1, 1]"])");
  }
}

TEST_CASE("write: merged ranks come back as they were") {
  const TempFolder folder;
  for (std::string path : traces()) {
    Run run = opened(path);
    if (run.traces.size() < 2) {
      Run other = opened(path);  // the same twice, as ranks 0 and 5, on clocks that differ
      run.traces.push_back(std::move(other.traces[0]));
      run.traces[0].rank.rank = 0;
      run.traces[1].rank.rank = 5;
      run.traces[1].clock_base_ns += run.traces[1].clock_base_ns == kAbsent ? 0 : 5'000'000'000;
    }
    CAPTURE(path);
    REQUIRE(writer("chrome").write(run, folder / "merged.json", {}));
    check_same(run, opened(folder / "merged.json"));
  }
  const Run run = opened(trace("two_ranks"));
  REQUIRE(writer("chrome").write(run, folder / "merged.json.gz", {.lane_prefix = "r"}));
  check_same(run, opened(folder / "merged.json.gz"));
  REQUIRE(writer("chrome").write(run, folder / "prefix.json", {.lane_prefix = "r"}));
  CHECK_NE(whole_file(folder / "prefix.json").find("\"name\": \"r1_"), std::string::npos);
  REQUIRE(writer("chrome").write(run, folder / "plain.json", {}));
  CHECK_NE(whole_file(folder / "plain.json").find("\"name\": \"rank 1 / "), std::string::npos);
}

TEST_CASE("write: a merged file without its notes is told, not guessed") {
  const TempFolder folder;
  const Run run = opened(trace("two_ranks"));
  REQUIRE(writer("chrome").write(run, folder / "merged.json", {}));
  std::string text = whole_file(folder / "merged.json");
  text.replace(text.find("stepscope_rank_1"), 16, "stepscope_rank_9");
  std::ofstream(folder / "merged.json") << text;
  const Run damaged = opened(folder / "merged.json");
  REQUIRE_EQ(damaged.traces.size(), 1);
  CHECK_EQ(damaged.traces[0].issues.back().code, "merge_notes_damaged");
  CHECK_EQ(damaged.traces[0].slices.size(), run.traces[0].slices.size() + run.traces[1].slices.size());
}

TEST_CASE("write: folded stacks add up to the time of the outermost slices") {
  const TempFolder folder;
  for (const std::string& path : traces()) {
    CAPTURE(path);
    const Run run = opened(path);
    REQUIRE(writer("folded").write(run, folder / "out.txt", {}));
    std::int64_t written = 0, expected = 0;
    std::istringstream lines(whole_file(folder / "out.txt"));
    for (std::string line; std::getline(lines, line);) written += std::stoll(line.substr(line.rfind(' ') + 1));
    for (const Trace& one : run.traces) {
      for (std::size_t track = 0; track < one.tracks.size(); track++) {
        int depth = 0;
        std::int64_t begin = 0;
        visit_stacks(one, track, is_host_work,
                     {[&](SliceId, std::int64_t at_ns) { begin = depth++ == 0 ? at_ns : begin; },
                      [&](SliceId, std::int64_t at_ns) { expected += --depth == 0 ? at_ns - begin : 0; }});
        CHECK_EQ(depth, 0);
      }
    }
    CHECK_GT(written, 0);
    CHECK_EQ(written, expected);
  }
}

TEST_CASE("write: speedscope's events nest, and its frames are those of the trace") {
  const TempFolder folder;
  for (const std::string& path : traces()) {
    CAPTURE(path);
    REQUIRE(writer("speedscope").write(opened(path), folder / "out.json", {}));
    simdjson::dom::parser parser;
    const simdjson::dom::element root = parser.load(folder / "out.json").value();
    const simdjson::dom::array frames = root["shared"]["frames"].get_array().value();
    CHECK_GT(frames.size(), 0);
    const simdjson::dom::array profiles = root["profiles"].get_array().value();
    for (const auto profile : profiles) {
      std::vector<std::uint64_t> open_frames;
      std::int64_t last = profile["startValue"].get_int64().value();
      const simdjson::dom::array events = profile["events"].get_array().value();
      for (const auto event : events) {
        const auto frame = event["frame"].get_uint64().value();
        REQUIRE_LT(frame, frames.size());
        const auto at = event["at"].get_int64().value();
        REQUIRE_GE(at, last);
        last = at;
        if (event["type"].get_string().value() == "O") {
          open_frames.push_back(frame);
        } else {
          REQUIRE_EQ(open_frames.back(), frame);
          open_frames.pop_back();
        }
      }
      CHECK(open_frames.empty());
      CHECK_EQ(profile["endValue"].get_int64().value(), last);
    }
  }
}

TEST_CASE("write: csv has every row of every table") {
  const TempFolder folder;
  const Run run = opened(trace("two_ranks"));
  REQUIRE(writer("csv").write(run, folder / "tables", {}));
  const std::string slices = whole_file(folder / "tables/slices.csv");
  const auto lines = static_cast<std::size_t>(std::count(slices.begin(), slices.end(), '\n'));
  CHECK_EQ(lines, 1 + run.traces[0].slices.size() + run.traces[1].slices.size());
  CHECK(slices.starts_with("rank,slice,start_ns,dur_ns,name,category,kind,"));
  CHECK(fs::exists(folder / "tables/issues.csv"));
}

TEST_CASE("write: what cannot be written is told, and nothing is left behind") {
  const TempFolder folder;
  const Run run = opened(trace("tiny_cpu.json"));
  for (const Writer& one : writers()) {
    const auto done = one.write(run, folder / "none/deeper/out", {});
    if (!one.folder) CHECK_FALSE(done);
  }
  CHECK_FALSE(writer("csv").write(run, "/proc/none", {}));
}

}  // namespace stepscope::write
