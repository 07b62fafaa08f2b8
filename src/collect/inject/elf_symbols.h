// Addresses of named functions in an ELF file: .dynsym, else .symtab (an executable that exports nothing).
//
// The file belongs to the process that we look at, so nothing in it is believed: every offset is checked against the
// file's size, and only the tables that are needed are read (a static python with debug information has 100 MB).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace stepscope::collect {

struct ElfSegment {  // PT_LOAD
  std::uint64_t file_offset = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t address = 0;
  bool executable = false;
};

struct ElfSymbols {
  bool position_independent = true;  // false: addresses are final, there is no load bias
  std::vector<ElfSegment> segments;
  std::map<std::string, std::uint64_t> addresses;  // of the wanted names that the file defines, without load bias
};

// An Error where the file cannot be read, is no ELF file, or one of another machine or word size.
Result<ElfSymbols> read_elf_symbols(const std::string& path, const std::vector<std::string>& wanted);

// `count` bytes of the file that the loader puts at this address (without load bias); fewer where the file ends.
std::string bytes_at(const std::string& path, const ElfSymbols& symbols, std::uint64_t address, std::size_t count);

}  // namespace stepscope::collect
