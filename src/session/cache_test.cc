// The cache on a real folder: what comes back is what went in, and nothing damaged is ever believed.
#include "session/cache.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/temp_fixture.h"
#include "derive/derive.h"
#include "model/trace_compare_fixture.h"
#include "read/reader.h"

namespace stepscope::session {
namespace {

namespace fs = std::filesystem;

// A cache in an empty folder of its own, and a small trace beside it.
struct Setting {
  TempFolder temporary;
  const fs::path folder = temporary.path();
  const std::string file = (folder / "trace.json").string();
  Setting() {
    write(
        R"([{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":10.001,"dur":5,"args":{"External id":7}},)"
        R"({"ph":"X","cat":"kernel","name":"gemm \u00e9","pid":0,"tid":7,"ts":12,"dur":9000000,"args":{"stream":7}}])");
    setenv("STEPSCOPE_CACHE", (folder / "cache").c_str(), 1);
  }
  ~Setting() {
    unsetenv("STEPSCOPE_CACHE");
    unsetenv("STEPSCOPE_CACHE_MAX_MB");
  }
  void write(const std::string& text) const { std::ofstream(file) << text; }
  Trace read() const {
    auto traces = read::reader_named("chrome_trace")->read(file, {});
    REQUIRE(traces);
    REQUIRE(derive::derive(traces->front(), {}));
    return std::move(traces->front());
  }
  fs::path only_entry() const {
    const fs::directory_iterator entries(folder / "cache");
    return entries == fs::directory_iterator() ? fs::path() : entries->path();
  }
};

}  // namespace

TEST_CASE("a kept trace comes back whole") {
  const Setting setting;
  const Cache cache = Cache::from_environment(true);
  const std::string key = cache.key(setting.file, "");
  CHECK_FALSE(cache.load(key));
  const Trace trace = setting.read();
  cache.store(key, trace);
  const auto kept = cache.load(key);
  REQUIRE(kept);
  CHECK(kept->source.cached);
  CHECK(first_difference(trace, *kept) == "");
  CHECK(first_derived_difference(trace, *kept) == "");
}

TEST_CASE("another content, other rules or another file mean another key") {
  const Setting setting;
  const Cache cache = Cache::from_environment(true);
  const std::string key = cache.key(setting.file, "");
  CHECK(cache.key(setting.file, "") == key);
  CHECK(cache.key(setting.file, "a rule") != key);
  setting.write("[]");
  CHECK(cache.key(setting.file, "") != key);
  CHECK(cache.key(setting.file + ".not", "").empty());
}

TEST_CASE("a damaged entry is removed, whichever byte it is") {
  const Setting setting;
  const Cache cache = Cache::from_environment(true);
  const std::string key = cache.key(setting.file, "");
  const Trace trace = setting.read();
  cache.store(key, trace);
  const auto size = fs::file_size(setting.only_entry());
  for (std::uintmax_t at = 0; at < size; at += size / 40 + 1) {
    cache.store(key, trace);
    std::fstream entry(setting.only_entry(), std::ios::in | std::ios::out | std::ios::binary);
    entry.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(entry.get() ^ 0x40);
    entry.seekp(static_cast<std::streamoff>(at));
    entry.put(byte);
    entry.close();
    INFO("byte ", at);
    const bool padding = at >= 40 && at < 64;  // of the header: belongs to nothing
    CHECK(cache.load(key).has_value() == padding);
    CHECK(fs::exists(setting.folder / "cache"));
  }
  cache.store(key, trace);
  fs::resize_file(setting.only_entry(), size / 2);
  CHECK_FALSE(cache.load(key));
  CHECK(setting.only_entry().empty());
}

TEST_CASE("the folder is kept under its limit, and the cache can be switched off") {
  const Setting setting;
  setenv("STEPSCOPE_CACHE_MAX_MB", "0", 1);
  const Cache full = Cache::from_environment(true);
  full.store(full.key(setting.file, ""), setting.read());
  CHECK(setting.only_entry().empty());
  CHECK_FALSE(Cache::from_environment(false).enabled());
  setenv("STEPSCOPE_CACHE", "off", 1);
  CHECK_FALSE(Cache::from_environment(true).enabled());
}

}  // namespace stepscope::session
