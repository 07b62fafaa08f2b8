#include "formats/gzip_stream.h"

#include <isa-l/igzip_lib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace stepscope::formats {

struct GzipStream::State {
  int fd;
  std::uint64_t file_bytes;
  std::uint64_t read_at = 0;  // next byte of the file to fetch
  std::vector<std::uint8_t> input = std::vector<std::uint8_t>(256 << 10);
  inflate_state inflate{};
  bool in_member = false;       // a member was begun and is not finished
  std::uint64_t members = 0;    // begun so far
  std::uint64_t member_at = 0;  // file offset of the last one
  bool member_gave = false;     // it gave any bytes
  bool ended = false;
  Damage damage;

  void begin_member() {
    // Output kept back from the last member must not be lost: reset keeps next_in, avail_in.
    std::uint8_t* next = inflate.next_in;
    const std::uint32_t available = inflate.avail_in;
    isal_inflate_init(&inflate);
    inflate.next_in = next;
    inflate.avail_in = available;
    inflate.crc_flag = ISAL_GZIP;
  }

  bool refill() {
    if (inflate.avail_in > 0) return true;
    const std::uint64_t left = file_bytes - read_at;
    const std::size_t want = left < input.size() ? static_cast<std::size_t>(left) : input.size();
    ssize_t got = 0;
    do {
      if (want > 0) got = pread(fd, input.data(), want, static_cast<off_t>(read_at));
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return false;
    read_at += static_cast<std::uint64_t>(got);
    inflate.next_in = input.data();
    inflate.avail_in = static_cast<std::uint32_t>(got);
    return true;
  }

  // The member cannot go on. What follows a whole member and gave nothing was none: bytes behind the end.
  void give_up(bool& reason) {
    ended = true;
    if (members > 1 && !member_gave) {
      damage.trailing = file_bytes - member_at;
    } else {
      reason = true;
    }
  }

  // Between members: is there another one? Zero padding is nothing, anything else is counted as trailing bytes.
  bool next_member() {
    while (refill()) {
      if (members > 0 && *inflate.next_in == 0) {
        inflate.next_in++;
        inflate.avail_in--;
        continue;
      }
      member_at = read_at - inflate.avail_in;
      if (members > 0 && *inflate.next_in != 0x1f) {
        damage.trailing = file_bytes - member_at;
        return false;
      }
      begin_member();
      members++;
      in_member = true;
      member_gave = false;
      return true;
    }
    return false;
  }
};

GzipStream::GzipStream(int fd, std::uint64_t file_bytes) : state_(new State{.fd = fd, .file_bytes = file_bytes}) {}
GzipStream::~GzipStream() = default;
GzipStream::GzipStream(GzipStream&&) noexcept = default;

const GzipStream::Damage& GzipStream::damage() const { return state_->damage; }
std::uint64_t GzipStream::compressed_bytes_read() const { return state_->read_at; }

std::size_t GzipStream::read(char* out, std::size_t size) {
  State& s = *state_;
  std::size_t filled = 0;
  while (filled < size && !s.ended) {
    if (!s.in_member && !s.next_member()) {
      s.ended = true;
      break;
    }
    const bool more_input = s.refill();
    s.inflate.next_out = reinterpret_cast<std::uint8_t*>(out) + filled;
    s.inflate.avail_out = static_cast<std::uint32_t>(std::min<std::size_t>(size - filled, 1u << 30));
    const std::uint32_t room = s.inflate.avail_out;
    const int status = isal_inflate(&s.inflate);
    const std::uint32_t produced = room - s.inflate.avail_out;
    filled += produced;
    s.member_gave |= produced > 0;
    if (s.inflate.block_state == ISAL_BLOCK_FINISH || status == ISAL_INCORRECT_CHECKSUM) {
      s.damage.bad_checksum |= status == ISAL_INCORRECT_CHECKSUM;
      s.in_member = false;
    } else if (status != ISAL_DECOMP_OK && status != ISAL_END_INPUT) {
      s.give_up(s.damage.bad_data);
    } else if (!more_input && produced == 0) {
      s.give_up(s.damage.cut);
    }
  }
  return filled;
}

}  // namespace stepscope::formats
