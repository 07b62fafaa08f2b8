// A Trace as bytes: what the cache keeps. The bytes belong to one build of stepscope; they are no exchange format.
//
// Layout: members in the order of model/trace_members.h; numbers as they lie in memory, texts with their length, column
// data aligned to 64 bytes so that it can be used where it is mapped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "model/trace.h"

namespace stepscope::session {

using ByteSink = bool (*)(void* target, const void* bytes, std::size_t size);

// Hands the archive of `trace` to `sink` piece by piece; false when the sink refused one.
bool write_archive(const Trace& trace, ByteSink sink, void* target);

// A trace whose columns are views of `bytes`, which `owner` keeps alive. nullopt when the bytes are no whole archive.
std::optional<Trace> read_archive(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

}  // namespace stepscope::session
