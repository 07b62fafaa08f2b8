#include "read/perfetto/defects.h"

#include <optional>

namespace stepscope::read::perfetto {
namespace {

struct IssueText {
  const char* code;
  Severity severity;
  const char* sentence;
  const char* advice;
};

// In the order of Defect.
constexpr std::array<IssueText, static_cast<std::size_t>(Defect::count_)> kTexts{{
    {"broken_packet", Severity::lost, "packets that are no whole message were left out",
     "Copy or record the file again"},
    {"cut_inside_packet", Severity::lost,
     "the file is cut or broken inside a packet; bytes from there on were not read", "Copy or record the file again"},
    {"missing_time", Severity::lost, "events without a usable timestamp were left out", ""},
    {"unknown_clock", Severity::info, "events of clocks that nothing relates to the trace's; their times are as given",
     ""},
    {"unknown_text", Severity::lost, "names or texts are given by a number that the file does not explain",
     "Record again with a larger buffer: the start of the recording was overwritten"},
    {"unknown_track", Severity::lost, "events of tracks that the file does not describe were left out",
     "Copy or record the file again"},
    {"unpaired_begin_end", Severity::lost, "begins or ends of slices without their other half were left out", ""},
    {"unknown_event_kind", Severity::info, "track events of a kind that is not shown (those of the old JSON format)",
     ""},
    {"broken_details", Severity::lost, "details of events that are no whole message were read up to the break",
     "Copy or record the file again"},
    {"repaired_text", Severity::repaired, "texts with control bytes or invalid UTF-8 are shown with \\xNN", ""},
}};

}  // namespace

void Defects::report(std::vector<Issue>& issues, const std::string& file) const {
  for (std::size_t i = 0; i < tallies_.size(); i++) {
    const auto& [count, place] = tallies_[i];
    if (count == 0) continue;
    const IssueText& text = kTexts[i];
    add_issue(issues, {text.code, text.severity, text.sentence, text.advice, count, file, place, std::nullopt});
  }
}

}  // namespace stepscope::read::perfetto
