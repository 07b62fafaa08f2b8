// Where tests find real traces of other projects: $STEPSCOPE_CORPUS, else ../shared/data beside the repository. A test
// that needs them leaves with a message when they are absent. Not part of the program.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

namespace stepscope::corpus_fixture {

namespace fs = std::filesystem;

inline fs::path corpus() {
  if (const char* set = std::getenv("STEPSCOPE_CORPUS")) return set;
  return fs::path(__FILE__).parent_path() / "../../../shared/data";
}

inline bool has_corpus() {
  if (fs::is_directory(corpus() / "hta")) return true;
  MESSAGE("skipped: no real traces at " << corpus().string() << " (set STEPSCOPE_CORPUS)");
  return false;
}

}  // namespace stepscope::corpus_fixture
