// Files and folders that a test makes and that go with it. Not part of the program.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace stepscope {

// A folder of its own below the system's temporary folder.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "stepscope_test_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  // Writes a file and gives its path.
  std::string put(std::string_view name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return *this / name;
  }

 private:
  std::filesystem::path path_;
};

// A file with this content in a folder of its own.
class TempFile {
 public:
  explicit TempFile(std::string_view content, std::string_view name = "trace.json")
      : path_(folder_.put(name, content)) {}
  const std::string& path() const { return path_; }

 private:
  TempFolder folder_;
  std::string path_;
};

}  // namespace stepscope
