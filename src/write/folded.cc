// folded: "frame;frame;frame WEIGHT" lines as flame graph tools take them. The weight is the time in ns that was spent
// in the last frame itself; one line for each distinct stack of a thread's Python functions, operators and calls.
#include <algorithm>
#include <map>

#include "formats/out_file.h"
#include "model/track_stacks.h"
#include "write/writer.h"

namespace stepscope::write {
namespace {

constexpr std::size_t kDeepest = 256;

// ';' parts frames and a line end parts stacks.
std::string frame_of(std::string_view name) {
  std::string frame(name);
  std::replace(frame.begin(), frame.end(), ';', ':');
  std::replace_if(
      frame.begin(), frame.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return frame.empty() ? "(no name)" : frame;
}

class Folder {
 public:
  Folder(const Trace& trace, std::string root, std::map<std::string, std::int64_t>& weights)
      : trace_(trace), stack_(std::move(root)), weights_(weights) {}

  void open(SliceId slice, std::int64_t at_ns) {
    spend(at_ns);
    lengths_.push_back(stack_.size());
    // Deeper frames count as part of the one around them: the text of all stacks grows with the square of the depth.
    if (lengths_.size() <= kDeepest) stack_ += ';' + frame_of(trace_.name(slice));
  }
  void close(std::int64_t at_ns) {
    spend(at_ns);
    stack_.resize(lengths_.back());
    lengths_.pop_back();
  }

 private:
  void spend(std::int64_t at_ns) {
    if (!lengths_.empty() && at_ns > since_ns_) weights_[stack_] += at_ns - since_ns_;
    since_ns_ = at_ns;
  }

  const Trace& trace_;
  std::string stack_;
  std::vector<std::size_t> lengths_;
  std::int64_t since_ns_ = 0;
  std::map<std::string, std::int64_t>& weights_;
};

Result<void> write_folded(const Run& run, const std::string& out, const WriteOptions& options) {
  std::map<std::string, std::int64_t> weights;
  for (const Trace& trace : run.traces) {
    for (std::size_t track = 0; track < trace.tracks.size(); track++) {
      std::string root = frame_of(track_label(trace, track));
      if (run.traces.size() > 1) root = lane_name(trace.rank.rank, root, options);
      Folder folder(trace, std::move(root), weights);
      visit_stacks(trace, track, is_host_work,
                   {[&](SliceId slice, std::int64_t at_ns) { folder.open(slice, at_ns); },
                    [&](SliceId, std::int64_t at_ns) { folder.close(at_ns); }});
    }
  }
  auto file = formats::OutFile::create(out);
  if (!file) return fail(file.error());
  for (const auto& [stack, weight_ns] : weights) file->add(stack + " " + std::to_string(weight_ns) + "\n");
  return file->finish();
}

}  // namespace

Writer folded_writer() {
  return {"folded",
          "stacks of host threads with self time in ns, for flame graphs; at most 256 frames deep; not telemetry",
          false, false, write_folded};
}

}  // namespace stepscope::write
