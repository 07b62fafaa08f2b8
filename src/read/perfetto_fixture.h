// Perfetto files made packet by packet, for the tests of their reader. Not part of the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/temp_fixture.h"
#include "formats/perfetto_fields.h"
#include "formats/protobuf_writer.h"
#include "read/reader.h"

namespace stepscope::read {

namespace wire = formats::perfetto;
using formats::ProtoWriter;

inline const Reader& perfetto() { return *reader_named("perfetto"); }

// A file, packet by packet.
class PerfettoFile {
 public:
  template <class Fill>
  PerfettoFile& packet(Fill fill) {
    out_.begin(wire::trace::packet);
    out_.number(wire::packet::sequence, 1);
    fill(out_);
    out_.end();
    return *this;
  }
  template <class Fill>
  PerfettoFile& event(std::int64_t time_ns, std::uint64_t type, std::uint64_t track, Fill fill) {
    return packet([&](ProtoWriter& out) {
      out.number(wire::packet::timestamp, static_cast<std::uint64_t>(time_ns));
      out.begin(wire::packet::event);
      out.number(wire::event::type, type);
      out.number(wire::event::track, track);
      fill(out);
      out.end();
    });
  }
  PerfettoFile& begin(std::int64_t time_ns, std::uint64_t track, std::string_view name) {
    return event(time_ns, wire::event::slice_begin, track,
                 [&](ProtoWriter& out) { out.text(wire::event::name, name); });
  }
  PerfettoFile& end(std::int64_t time_ns, std::uint64_t track) {
    return event(time_ns, wire::event::slice_end, track, [](ProtoWriter&) {});
  }
  std::string bytes() const { return std::string(out_.bytes()); }

 private:
  ProtoWriter out_;
};

inline Result<std::vector<Trace>> read_bytes(std::string_view bytes) {
  const TempFile file(bytes, "t.pftrace");
  return perfetto().read(file.path(), {});
}

inline const Issue* issue(const Trace& trace, std::string_view code) {
  for (const Issue& each : trace.issues) {
    if (each.code == code) return &each;
  }
  return nullptr;
}

inline PerfettoFile process_and_thread() {
  PerfettoFile file;
  file.packet([](ProtoWriter& out) {
    out.number(wire::packet::flags, wire::packet::cleared);
    out.begin(wire::packet::track);
    out.number(wire::track::uuid, 10);
    out.begin(wire::track::process);
    out.number(wire::process::pid, 42);
    out.text(wire::process::name, "browser");
    out.end();
    out.end();
  });
  file.packet([](ProtoWriter& out) {
    out.begin(wire::packet::track);
    out.number(wire::track::uuid, 11);
    out.number(wire::track::parent, 10);
    out.begin(wire::track::thread);
    out.number(wire::thread::pid, 42);
    out.number(wire::thread::tid, 43);
    out.text(wire::thread::name, "main");
    out.end();
    out.end();
  });
  return file;
}

}  // namespace stepscope::read
