// What is no trace is refused with one sentence that says what it looks like; folders leave out nothing in silence.
#include "session/inputs.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <chrono>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/temp_fixture.h"
#include "formats/gzip_text.h"
#include "session/looks_like.h"

using namespace stepscope;
using session::find_inputs;
using session::recognize;

namespace {

namespace fs = std::filesystem;

void check_refused(std::string_view content, std::string_view what) {
  const TempFolder folder;
  const auto reader = recognize(folder.put("trace.json", content));
  CAPTURE(what);
  REQUIRE_FALSE(reader);
  CHECK(reader.error().kind == ErrorKind::unrecognized);
  CHECK(reader.error().message == "is no trace that stepscope knows: it looks like " + std::string(what));
  CHECK(reader.error().hint != "");
}

constexpr std::string_view kTiny = R"([{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}])";

}  // namespace

TEST_CASE("35: empty and nearly empty files are refused as such") {
  check_refused("", "an empty file");
  check_refused("\n \t", "a file of blanks");
  check_refused(std::string(100, '\0'), "a file of zero bytes");
  check_refused("{", "JSON that ends after its first bracket");
  check_refused("[\n", "JSON that ends after its first bracket");
  check_refused(formats::gzip(""), "an empty or broken gzip file");
  check_refused("\x1f\x8b", "an empty or broken gzip file");
}

TEST_CASE("our own files are named, whatever their schema_version") {
  check_refused(R"({"schema_version": 9, "stepscope_version": "7.0.0", "job": "train", "processes": []})",
                "the run.json of a stepscope run");
  check_refused(R"({"schema_version": 9, "stepscope": {"version": "7.0.0"}, "input": {}})",
                "a report that stepscope made");
  check_refused(R"({"schema_version": 9})", "JSON that is no trace");
}

TEST_CASE("a run folder of a newer stepscope opens, and its format is said") {
  const TempFolder folder;
  folder.put("a.json", kTiny);
  const auto issues_with = [&](std::string_view manifest) {
    folder.put("run.json", manifest);
    std::vector<Issue> issues;
    const auto files = find_inputs(std::vector{folder.path().string()}, issues);
    REQUIRE(files);
    CHECK(files->size() == 1);
    return issues;
  };
  const auto issues = issues_with(R"({"schema_version": 2, "processes": "elsewhere"})");
  REQUIRE(issues.size() == 1);
  CHECK(issues[0].severity == Severity::info);
  CHECK(issues[0].sentence == "run.json has schema_version 2, this stepscope knows 1: what is new in it is left out");
  CHECK(issues[0].advice == "Use the stepscope that recorded the run, or a newer one");
  for (const char* known :
       {R"({"schema_version": 1})", R"({"schema_version": "2"})", "[2]", "{\"schema_version\": 2"}) {
    CAPTURE(known);
    CHECK(issues_with(known).empty());
  }
}

TEST_CASE("34: UTF-16 is named, with and without its mark") {
  check_refused(std::string_view("\xFF\xFE[\0{\0", 6), "UTF-16 text");
  check_refused(std::string_view("[\0{\0\"\0p\0", 8), "UTF-16 text");
  check_refused(std::string_view("\0[\0{\0\"\0p", 8), "UTF-16 text");
}

TEST_CASE("36, 49: other things that are given as traces are named") {
  check_refused("<!DOCTYPE html><html>traceEvents</html>", "an HTML page");
  check_refused("  <html><body>404", "an HTML page");
  check_refused("<html>\n<head><meta charset=\"utf-8\" /><title>GPU Memory Timeline HTML</title></head>",
                "a picture of a memory timeline");
  check_refused("<?xml version='1.0'?>", "XML");
  check_refused("version https://git-lfs.github.com/spec/v1\noid sha256:0", "a Git LFS pointer");
  // 49, 50: of every protocol, with an opcode that would call os.system
  for (const char protocol : {'\2', '\3', '\4', '\5'}) {
    check_refused(std::string("\x80") + protocol + "cos\nsystem\n(S'true'\ntR.",
                  "a Python pickle (a memory snapshot?)");
  }
  check_refused("PK\x03\x04 zip", "a zip archive");
  check_refused("\x28\xB5\x2F\xFD", "a Zstandard file");
  check_refused(formats::gzip(formats::gzip(kTiny)), "a gzip file inside a gzip file");
  check_refused("Memory State:\ntime: 0.1\n---summary---\n", "the memory.log of a memory profiler");
  check_refused("step 1 loss 2.5\nstep 2 loss 2.4\n", "plain text");
  check_refused("{\"loss\": [1, 2]}", "JSON that is no trace");
  check_refused("[{\"name\": \"bob\", \"age\": 3}]", "JSON that is no trace");
  check_refused("[[1, 2], [3]]", "JSON that is no trace");
  const std::string tar = "trace.json" + std::string(247, '\0') + "ustar  " + std::string(300, '\0');
  check_refused(tar, "a tar archive");
  check_refused(formats::gzip(tar), "a tar archive");
  check_refused(std::string_view("\x01\x02\x00\x03 binary", 11), "binary data");
}

TEST_CASE("a pickle that is named goes to the reader of snapshots, one that is found does not") {
  const TempFolder folder;
  const auto reader_of = [&](const char* name, std::string_view content) -> std::string {
    std::vector<Issue> issues;
    const auto files = find_inputs(std::vector{folder.put(name, content)}, issues);
    return files ? std::string(files->front().reader->name) : files.error().message;
  };
  CHECK(reader_of("a.pickle", "\x80\x04]\x94.") == "cuda_snapshot");
  CHECK(reader_of("b.dat", "\x80\x02}.") == "cuda_snapshot");
  CHECK(reader_of("c.pickle.gz", formats::gzip("\x80\x04}.")) == "cuda_snapshot");
  CHECK(reader_of("d.pkl", "(dp0\nVsegments\np1\n") == "cuda_snapshot");  // protocol 0
  CHECK(reader_of("e.txt", "(dp0\nVsegments\np1\n").ends_with("plain text"));
  CHECK(reader_of("f.pickle", "").ends_with("an empty file"));
  CHECK(reader_of("g.pickle", "<html>404").ends_with("an HTML page"));
  CHECK(reader_of("h.pickle", kTiny) == "chrome_trace");
  fs::remove(folder / "h.pickle");
  std::vector<Issue> issues;
  CHECK_FALSE(find_inputs(std::vector{folder.path().string()}, issues));
}

TEST_CASE("36: pipes and missing files are refused with what to do") {
  const TempFolder folder;
  const std::string pipe = folder / "pipe.json";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const auto fifo = recognize(pipe);
  REQUIRE_FALSE(fifo);
  CHECK(fifo.error().kind == ErrorKind::unreadable);
  CHECK(fifo.error().message == "is not a regular file (a pipe, socket or device)");
  const auto missing = recognize(folder / "none.json");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().kind == ErrorKind::not_found);
}

TEST_CASE("a trace is known by its content, whatever its name") {
  const TempFolder folder;
  CHECK(recognize(folder.put("notes.txt", kTiny)));
  CHECK(recognize(folder.put("a.json", formats::gzip(kTiny))));
  CHECK(recognize(folder.put("b", "\xEF\xBB\xBF{\"traceEvents\": []}")));
  CHECK(recognize(folder.put("c", "[\n,{\"ph\": \"X\"}")));
  CHECK(recognize(folder.put("d", "[]")));
}

TEST_CASE("a folder gives its traces in order and says which it left out") {
  const TempFolder folder;
  fs::create_directory(folder.path() / "sub");
  folder.put("sub/b.json", kTiny);
  folder.put("a.json", kTiny);
  folder.put("config.json", "{\"lr\": 1}");
  folder.put("rank3.pt.trace.json", "");
  folder.put("rank4.json.gz", "");
  folder.put("sampled_rank-5.json", "{");
  folder.put("worker6.json", "");
  std::vector<Issue> issues;
  const std::string path = folder.path().string();
  const auto files = find_inputs(std::span(&path, 1), issues);
  REQUIRE(files);
  REQUIRE(files->size() == 2);
  CHECK((*files)[0].path.ends_with("a.json"));
  REQUIRE(issues.size() == 4);
  CHECK(issues[0].code == "file_left_out");
  CHECK(issues[0].severity == Severity::lost);
  CHECK(issues[0].file.ends_with("rank3.pt.trace.json"));
  CHECK(issues[1].file.ends_with("rank4.json.gz"));
  CHECK(issues[2].file.ends_with("sampled_rank-5.json"));
  CHECK(issues[3].file.ends_with("worker6.json"));
}

TEST_CASE("a file given twice is read once; one bad file beside a good one is an issue") {
  const TempFolder folder;
  const std::string good = folder.put("a.json", kTiny), bad = folder.put("b.json", "");
  const std::vector<std::string> paths{good, bad, folder.path().string() + "/./a.json"};
  std::vector<Issue> issues;
  const auto files = find_inputs(paths, issues);
  REQUIRE(files);
  CHECK(files->size() == 1);
  REQUIRE(issues.size() == 1);
  CHECK(issues[0].code == "file_left_out");
  CHECK_FALSE(find_inputs(std::span(&bad, 1), issues));
}

TEST_CASE("of a folder of several runs the newest is opened, and the others are told of") {
  const TempFolder folder;
  for (const char* run : {"Nov20_10-00-00", "Nov21_10-00-00", "Nov21_10-00-00-2"}) {
    fs::create_directories(folder.path() / "train" / run / "traces");
    folder.put(std::string("train/") + run + "/run.json", "{\"schema_version\": 1}");
    folder.put(std::string("train/") + run + "/traces/rank0.json", kTiny);
  }
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(folder / "train/Nov21_10-00-00-2/run.json", old);
  fs::last_write_time(folder / "train/Nov20_10-00-00/run.json", old);
  std::vector<Issue> issues;
  const auto files = find_inputs(std::vector{folder.path().string()}, issues);
  REQUIRE(files);
  REQUIRE(files->size() == 1);
  CHECK((*files)[0].path == folder / "train/Nov21_10-00-00/traces/rank0.json");
  REQUIRE(issues.size() == 1);
  CHECK(issues[0].code == "other_runs");
  CHECK(issues[0].count == 2);
  issues.clear();
  CHECK(find_inputs(std::vector{folder / "train/Nov20_10-00-00"}, issues)->size() == 1);
  CHECK(issues.empty());
}

TEST_CASE("the traces among 10,000 files of other kinds are found, and where the looking ended is told") {
  const TempFolder folder;
  const std::string_view kinds[] = {"",
                                    "import torch",
                                    R"({"lr": 1e-3, "layers": [1, 2, 3]})",
                                    "\x89PNG\r\n\x1a\n",
                                    "\x80\x04\x95\x10 pickle",
                                    "PK\x03\x04 zip",
                                    "\x1f\x8b broken gzip",
                                    "SQLite format 3",
                                    "\x08\x00\x00\x00\x00\x00\x00\x00{\"__metadata__\":{}}",
                                    "step 1 loss 2.5\nstep 2 loss 2.4\n"};
  for (int i = 0; i < 10'000; i++) folder.put("file" + std::to_string(i) + ".dat", kinds[i % 10]);
  folder.put("file9.trace.json", kTiny);
  folder.put("zz.json", kTiny);
  const std::string path = folder.path().string();
  std::vector<Issue> issues;
  const auto files = find_inputs(std::span(&path, 1), issues);
  REQUIRE(files);
  CHECK(files->size() == 2);
  CHECK(issues.empty());
  (void)find_inputs(std::span(&path, 1), issues, 100);
  REQUIRE(issues.size() == 1);
  CHECK(issues[0].code == "folder_cut");
  CHECK(issues[0].severity == Severity::lost);
}
