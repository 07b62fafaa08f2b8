#include "collect/inject/elf_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace stepscope::collect {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#else
constexpr std::uint16_t kMachine = EM_NONE;
#endif

constexpr std::uint64_t kMostTableBytes = 256 << 20;

class File {
 public:
  explicit File(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat info {};
    if (descriptor_ >= 0 && fstat(descriptor_, &info) == 0 && S_ISREG(info.st_mode)) {
      size_ = static_cast<std::uint64_t>(info.st_size);
    }
  }
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool opened() const { return descriptor_ >= 0; }
  std::uint64_t size() const { return size_; }

  // False unless all `bytes` are there.
  bool read(std::uint64_t offset, void* into, std::uint64_t bytes) const {
    if (offset > size_ || bytes > size_ - offset) return false;
    auto* at = static_cast<char*>(into);
    while (bytes > 0) {
      const ssize_t got = pread(descriptor_, at, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::uint64_t>(got);
    }
    return true;
  }

  template <class T>
  bool read_table(std::uint64_t offset, std::uint64_t count, std::vector<T>& out) const {
    if (count > kMostTableBytes / sizeof(T) || offset > size_ || count * sizeof(T) > size_ - offset) return false;
    out.resize(count);
    return read(offset, out.data(), count * sizeof(T));
  }

 private:
  int descriptor_;
  std::uint64_t size_ = 0;
};

Error odd(const std::string& path, std::string message) {
  return {ErrorKind::malformed, std::move(message), path, {}, ""};
}

void take_symbols(const File& file, const std::vector<Elf64_Shdr>& sections, std::uint32_t type,
                  const std::vector<std::string>& wanted, ElfSymbols& out) {
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != type || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[section.sh_link];
    std::vector<Elf64_Sym> table;
    std::vector<char> names;
    if (!file.read_table(section.sh_offset, section.sh_size / sizeof(Elf64_Sym), table)) continue;
    if (!file.read_table(strings.sh_offset, strings.sh_size, names) || names.empty()) continue;
    names.back() = '\0';
    for (const Elf64_Sym& symbol : table) {
      const unsigned kind = ELF64_ST_TYPE(symbol.st_info);
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names.size()) continue;
      if (kind != STT_FUNC && kind != STT_OBJECT) continue;
      const char* name = names.data() + symbol.st_name;
      if (std::find(wanted.begin(), wanted.end(), name) != wanted.end())
        out.addresses.try_emplace(name, symbol.st_value);
    }
  }
}

}  // namespace

Result<ElfSymbols> read_elf_symbols(const std::string& path, const std::vector<std::string>& wanted) {
  const File file(path);
  if (!file.opened()) {
    return fail({ErrorKind::unreadable, std::string("cannot be read: ") + std::strerror(errno), path, {}, ""});
  }
  Elf64_Ehdr header{};
  if (!file.read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return fail(odd(path, "this is no ELF file"));
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
    return fail(
        {ErrorKind::unsupported, "this is a program of another word size or machine than stepscope", path, {}, ""});
  }
  ElfSymbols out;
  out.position_independent = header.e_type == ET_DYN;
  std::vector<Elf64_Phdr> segments;
  std::vector<Elf64_Shdr> sections;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || !file.read_table(header.e_phoff, header.e_phnum, segments)) {
    return fail(odd(path, "its ELF program headers are broken"));
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD) continue;
    out.segments.push_back({segment.p_offset, segment.p_filesz, segment.p_vaddr, (segment.p_flags & PF_X) != 0});
  }
  if (header.e_shentsize != sizeof(Elf64_Shdr) || !file.read_table(header.e_shoff, header.e_shnum, sections))
    return out;
  take_symbols(file, sections, SHT_DYNSYM, wanted, out);
  if (out.addresses.size() < wanted.size()) take_symbols(file, sections, SHT_SYMTAB, wanted, out);
  return out;
}

std::string bytes_at(const std::string& path, const ElfSymbols& symbols, std::uint64_t address, std::size_t count) {
  const File file(path);
  for (const ElfSegment& segment : symbols.segments) {
    if (address < segment.address || address - segment.address >= segment.file_bytes) continue;
    const std::uint64_t inside = address - segment.address;
    std::string out(std::min<std::uint64_t>(count, segment.file_bytes - inside), '\0');
    if (file.read(segment.file_offset + inside, out.data(), out.size())) return out;
  }
  return {};
}

}  // namespace stepscope::collect
