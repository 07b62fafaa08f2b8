#include "base/pages.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace stepscope::pages {
namespace {

constexpr std::size_t kOwnPages = 256 << 10;  // blocks from this size on have pages of their own

bool own(std::size_t bytes) { return bytes >= kOwnPages; }

void* checked(void* block) {
  if (block == nullptr || block == MAP_FAILED) throw std::bad_alloc();
  return block;
}

}  // namespace

void* grow(void* block, std::size_t old_bytes, std::size_t bytes) {
  if (!own(bytes)) return checked(std::realloc(block, bytes));
  if (own(old_bytes)) return checked(mremap(block, old_bytes, bytes, MREMAP_MAYMOVE));
  void* fresh = checked(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (old_bytes > 0) std::memcpy(fresh, block, old_bytes);
  std::free(block);
  return fresh;
}

void release(void* block, std::size_t bytes) {
  if (own(bytes)) {
    munmap(block, bytes);
  } else {
    std::free(block);
  }
}

}  // namespace stepscope::pages
