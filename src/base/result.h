// The error vocabulary of the whole core: a function that can fail returns Result<T>.
//
// No exception crosses a folder, nothing below cli/ prints or exits. An Error is one sentence for a person, the place
// (file, byte offset) where known, and a hint that starts with a verb: the next thing to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>

namespace stepscope {

enum class ErrorKind : std::uint8_t {
  not_found,     // no such file, rank, analysis …
  unreadable,    // the system refused: permission, I/O error, directory where a file was meant
  unrecognized,  // a file whose content is no known format
  malformed,     // a known format, broken beyond what a partial result could carry
  too_large,     // a limit that protects memory was hit
  changed,       // the input changed while it was read
  unsupported,   // understood but not possible here
  usage,         // the caller asked for something that does not exist
  internal,      // a defect of stepscope
};

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string message;                  // one sentence without a final full stop
  std::string file;                     // empty: no file is concerned
  std::optional<std::uint64_t> offset;  // byte offset in the (uncompressed) text of `file`
  std::string hint;                     // starts with a verb; empty: nothing useful to say
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

// "FILE:OFFSET: message. Hint." on one line, as every door prints it.
std::string to_text(const Error& error);

}  // namespace stepscope
