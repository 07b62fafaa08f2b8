// Memory for columns: small blocks from the heap, big ones in pages of their own that grow by remapping.
//
// The C library's realloc would do the same, but only above a threshold that it raises to 32 MiB as blocks are freed;
// below it, every growth copies and touches fresh pages.
#pragma once

#include <cstddef>

namespace stepscope::pages {

// A block of `bytes` that begins with the content of `block` (of `old_bytes`, which this function gave, or null).
// Throws std::bad_alloc.
void* grow(void* block, std::size_t old_bytes, std::size_t bytes);
// `bytes` must be what the block was last grown to.
void release(void* block, std::size_t bytes);

}  // namespace stepscope::pages
