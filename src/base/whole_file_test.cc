#include "base/whole_file.h"

#include <doctest/doctest.h>

#include "base/temp_fixture.h"

namespace stepscope {

TEST_CASE("whole file: what cannot be read, or fails meanwhile, is empty and no exception") {
  const TempFolder folder;
  folder.put("text", std::string("a\0b\n", 4));
  folder.put("empty", "");
  CHECK(whole_file((folder.path() / "text").string()) == std::string("a\0b\n", 4));
  CHECK(whole_file((folder.path() / "empty").string()).empty());
  CHECK(whole_file((folder.path() / "missing").string()).empty());
  CHECK(whole_file(folder.path().string()).empty());  // a folder opens, and reading it fails: EISDIR
}

}  // namespace stepscope
