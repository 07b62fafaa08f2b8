#include "collect/requests.h"

#include <doctest/doctest.h>

#include <set>
#include <thread>
#include <vector>

#include "base/temp_fixture.h"
#include "base/whole_file.h"

namespace stepscope::collect {
namespace fs = std::filesystem;

TEST_CASE("requests are numbered files") {
  const TempFolder run;
  CHECK(write_request(run.path(), {}).value() == "0001");
  CHECK(write_request(run.path(), {5, "0,last"}).value() == "0002");
  const std::string text = whole_file(run / "requests/0002.json");
  CHECK(text.starts_with("{\"schema_version\": 1, \"id\": \"0002\", \"unix_ns\": 1"));
  CHECK(text.ends_with(", \"steps\": 5, \"ranks\": \"0,last\"}\n"));
}

TEST_CASE("a number that someone holds or left is passed by") {
  const TempFolder run;
  fs::create_directory(run / "requests");
  run.put("requests/0001.json.tmp", "half");
  run.put("requests/0002.json", "{}");
  CHECK(write_request(run.path(), {}).value() == "0003");
}

TEST_CASE("several writers at once each get a number of their own") {
  const TempFolder run;
  constexpr int kWriters = 4, kEach = 20;
  std::vector<std::vector<std::string>> ids(kWriters);
  std::vector<std::thread> writers;
  for (auto& own : ids) {
    writers.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) own.push_back(write_request(run.path(), {}).value_or("failed"));
    });
  }
  for (std::thread& writer : writers) writer.join();
  std::set<std::string> all;
  for (const auto& own : ids) all.insert(own.begin(), own.end());
  CHECK(all.size() == kWriters * kEach);
  CHECK(all.count("failed") == 0);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(run / "requests")) files += entry.path().extension() == ".json";
  CHECK(files == kWriters * kEach);
}

TEST_CASE("a run folder that is gone is an error, not a new folder") {
  const TempFolder run;
  const auto written = write_request(run / "gone", {});
  REQUIRE_FALSE(written.has_value());
  CHECK(written.error().file.find("gone/requests") != std::string::npos);
  CHECK_FALSE(fs::exists(run / "gone"));
}

}  // namespace stepscope::collect
