#include "collect/processes/memory_map.h"

#include <charconv>
#include <cstdio>
#include <fstream>
#include <string_view>

namespace stepscope::collect {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

bool take_hex(std::string_view& text, char end, std::uint64_t& value) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || at == text.data() + text.size() || *at != end) return false;
  text.remove_prefix(static_cast<std::size_t>(at - text.data()) + 1);
  return true;
}

void skip_word(std::string_view& text) {
  const std::size_t end = text.find(' ');
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
}

// "START-END rwxp OFFSET DEVICE INODE      PATH"; the path may hold blanks.
bool read_line(std::string_view line, Mapping& out) {
  if (!take_hex(line, '-', out.start) || !take_hex(line, ' ', out.end) || line.size() < 5) return false;
  out.executable = line[2] == 'x';
  skip_word(line);
  if (!take_hex(line, ' ', out.file_offset)) return false;
  skip_word(line);
  skip_word(line);
  const std::size_t path = line.find_first_not_of(' ');
  if (path == std::string_view::npos) return true;
  line.remove_prefix(path);
  out.deleted = line.size() > kDeleted.size() && line.substr(line.size() - kDeleted.size()) == kDeleted;
  if (out.deleted) line.remove_suffix(kDeleted.size());
  out.path = line;
  return true;
}

}  // namespace

std::vector<Mapping> read_memory_map(const std::string& proc_root, pid_t pid) {
  std::ifstream file(proc_root + "/" + std::to_string(pid) + "/maps");
  std::vector<Mapping> out;
  for (std::string line; std::getline(file, line);) {
    Mapping mapping;
    if (read_line(line, mapping)) out.push_back(std::move(mapping));
  }
  return out;
}

std::string path_of_file(const std::string& proc_root, pid_t pid, const Mapping& mapping) {
  const std::string folder = proc_root + "/" + std::to_string(pid);
  if (!mapping.deleted) return folder + "/root" + mapping.path;
  char range[64];
  std::snprintf(range, sizeof range, "%lx-%lx", static_cast<unsigned long>(mapping.start),
                static_cast<unsigned long>(mapping.end));
  return folder + "/map_files/" + range;
}

}  // namespace stepscope::collect
