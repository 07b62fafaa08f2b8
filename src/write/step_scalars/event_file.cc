// Event files: records of protobuf messages `Event`, one for each step, with the step's values as `Summary`.
//
// Values are `simple_value` (f32), as torch's SummaryWriter writes them, and not tensors: every version of TensorBoard
// and every other reader of such files takes them. With the first value of a curve stands what it means.
#include <filesystem>

#include "base/version.h"
#include "formats/out_file.h"
#include "formats/protobuf_writer.h"
#include "formats/record_file.h"
#include "write/step_scalars.h"

namespace stepscope::write {
namespace {

namespace fs = std::filesystem;

// Fields of tensorboard's event.proto and summary.proto.
enum InEvent : std::uint32_t { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSource = 10 };
enum InSource : std::uint32_t { kWriter = 1 };
enum InSummary : std::uint32_t { kValue = 1 };
enum InValue : std::uint32_t { kTag = 1, kSimpleValue = 2, kMetadata = 9 };
enum InMetadata : std::uint32_t { kPlugin = 1, kDescription = 3 };
enum InPlugin : std::uint32_t { kPluginName = 1 };

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string head_event(std::int64_t unix_ns) {
  formats::ProtoWriter event;
  event.real(kWallTime, seconds(unix_ns));
  event.text(kFileVersion, "brain.Event:2");
  event.begin(kSource);
  event.text(kWriter, "stepscope " + std::string(version()));
  event.end();
  return std::string(event.bytes());
}

class StepEvents {
 public:
  explicit StepEvents(const std::vector<ScalarCurve>& curves) : curves_(curves), begun_(curves.size()) {}

  std::string_view event(const ScalarStep& step) {
    event_.clear();
    event_.real(kWallTime, seconds(step.unix_ns));
    event_.number(kStep, static_cast<std::uint64_t>(step.number));
    event_.begin(kSummary);
    for (const auto& [curve, value] : step.values) add(curve, static_cast<float>(value));
    event_.end();
    return event_.bytes();
  }

 private:
  void add(std::size_t curve, float value) {
    event_.begin(kValue);
    event_.text(kTag, curves_[curve].tag);
    event_.real32(kSimpleValue, value);
    if (!begun_[curve]) {
      event_.begin(kMetadata);
      event_.begin(kPlugin);
      event_.text(kPluginName, "scalars");
      event_.end();
      event_.text(kDescription, curves_[curve].meaning);
      event_.end();
    }
    event_.end();
    begun_[curve] = true;
  }

  const std::vector<ScalarCurve>& curves_;
  std::vector<bool> begun_;
  formats::ProtoWriter event_;
};

Result<void> write_rank(const RankScalars& rank, const std::string& path) {
  std::error_code error;
  const std::string folder = fs::path(path).parent_path().string();
  fs::create_directories(folder, error);
  if (error) {
    return fail({ErrorKind::unreadable, "the folder cannot be made: " + error.message(), folder, std::nullopt,
                 "Name a folder that may be written to, or that is not there yet"});
  }
  auto file = formats::OutFile::create(path);
  if (!file) return fail(file.error());
  std::string record;
  const auto add = [&](std::string_view event) {
    record.clear();
    formats::append_record(record, event);
    file->add(record);
  };
  add(head_event(rank.steps.front().unix_ns));
  StepEvents events(rank.curves);
  for (const ScalarStep& step : rank.steps) add(events.event(step));
  return file->finish();
}

}  // namespace

std::string event_file_path(const std::string& folder, const RankScalars& rank) {
  return (fs::path(folder) / rank.name / "events.out.tfevents.stepscope").string();
}

Result<void> write_event_files(const StepScalars& scalars, const std::string& folder) {
  for (const RankScalars& rank : scalars.ranks) {
    if (auto written = write_rank(rank, event_file_path(folder, rank)); !written) return written;
  }
  return {};
}

}  // namespace stepscope::write
