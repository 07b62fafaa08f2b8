// Reader of what torch.profiler's export_memory_timeline writes: .raw.json, rows of [time, action, bytes, category],
// and .json, [times, levels by category]; plain or gzip. The levels become changes, so that both are one table.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "formats/json_stream.h"
#include "formats/number_text.h"
#include "formats/text_file.h"
#include "read/file_text_trace.h"
#include "read/reader.h"

namespace stepscope::read {
namespace {

using formats::JsonStream;
using Numbers = std::vector<std::int64_t>;

constexpr std::size_t kRowNumbers = 4;                          // time, action, bytes, category
constexpr std::size_t kLevelNumbers = kTimelineCategories + 1;  // a zero comes first: where drawing begins
constexpr std::size_t kTellingTimes = 64;                       // so many numbers in one list are times

bool is_row(const Numbers& numbers) {
  return numbers.size() == kRowNumbers && numbers[0] >= -1 && numbers[1] >= 1 &&
         numbers[1] < static_cast<std::int64_t>(kTimelineActions) && numbers[3] >= 0 &&
         numbers[3] < static_cast<std::int64_t>(kTimelineCategories);
}

// Steps over `[` and what is blank; false: something else stands there.
bool pass(std::string_view& text, char wanted) {
  const std::size_t first = text.find_first_not_of(" \n\r\t");
  if (first == text.npos || text[first] != wanted) return false;
  text.remove_prefix(first + 1);
  return true;
}

// [[1, 2, 3, 4], … with numbers of a row, or a long list of times, which may go on behind the head.
bool recognizes(std::string_view head) {
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  const bool list = pass(head, '[');
  const bool nested = list && pass(head, '[');
  if (!nested) return false;
  Numbers numbers;
  do {
    const std::size_t first = std::min(head.find_first_not_of(" \n\r\t"), head.size());
    head.remove_prefix(first);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(head.data(), head.data() + head.size(), number);
    if (error != std::errc()) return false;
    numbers.push_back(number);
    head.remove_prefix(static_cast<std::size_t>(end - head.data()));
  } while (numbers.size() < kTellingTimes && pass(head, ','));
  if (numbers.size() == kTellingTimes) return std::is_sorted(numbers.begin(), numbers.end());
  if (!pass(head, ']')) return false;
  const bool levels = pass(head, ',') && pass(head, '[') && pass(head, '[');
  return levels ? std::is_sorted(numbers.begin(), numbers.end()) : is_row(numbers);
}

class TimelineFile {
 public:
  TimelineFile(formats::TextFile& file, const std::string& path, std::size_t window)
      : file_(file), in_(file, window > 0 ? window : JsonStream::kWindow) {
    trace.source = {.path = path, .format = "memory_timeline", .writer = "torch.profiler"};
  }

  Trace trace;

  Result<void> read() {
    Numbers first;
    in_.enter_array();
    const bool any = in_.next_element();
    const std::uint64_t at = in_.offset();
    const bool whole = any && list(first);
    if (any && levels_follow()) {
      read_levels(first);
    } else if (any) {
      take_row(whole, first, at);
      read_rows();
    }
    if (in_.end() == JsonStream::End::failed) return fail(*in_.error());
    if (trace.memory_timeline.size() == 0) {
      return fail({ErrorKind::malformed, "no row of a memory timeline could be read", trace.source.path, in_.offset(),
                   "Give a file of torch.profiler's export_memory_timeline"});
    }
    note_end();
    return {};
  }

 private:
  // The numbers of the list that comes next; false: it is none, or holds something else too.
  bool list(Numbers& numbers) {
    numbers.clear();
    if (!in_.enter_array()) {
      in_.skip();
      return false;
    }
    return rest_of_list(numbers);
  }

  // Of a list that was entered already, behind those numbers that are there.
  bool rest_of_list(Numbers& numbers) {
    bool whole = true;
    while (in_.next_element()) whole = number(numbers) && whole;
    return whole && in_.end() == JsonStream::End::open;
  }

  bool number(Numbers& numbers) {
    const std::string_view text = in_.value();
    return !text.empty() && formats::parse_int(text.data(), text.data() + text.size(), numbers.emplace_back());
  }

  // Is the second element a list of lists? Else its first row is read here, or what stands in its place is passed.
  bool levels_follow() {
    if (!in_.next_element()) return false;
    const std::uint64_t at = in_.offset();
    Numbers numbers;
    if (!in_.enter_array()) {
      in_.skip();
      second_ = {at, false, {}};
      return false;
    }
    if (!in_.next_element()) {
      second_ = {at, false, {}};
      return false;
    }
    if (in_.enter_array()) return true;
    const bool first = number(numbers);
    const bool whole = rest_of_list(numbers) && first;
    second_ = {at, whole, std::move(numbers)};
    return false;
  }

  void read_rows() {
    if (second_) take_row(second_->whole, second_->numbers, second_->at);
    Numbers numbers;
    while (in_.next_element()) {
      const std::uint64_t at = in_.offset();
      const bool whole = list(numbers);
      if (whole || in_.end() == JsonStream::End::open) take_row(whole, numbers, at);
    }
  }

  void take_row(bool whole, const Numbers& numbers, std::uint64_t at) {
    if (!whole || !is_row(numbers)) return note_bad(at);
    add(numbers[0] < 0 ? kAbsent : numbers[0], static_cast<TimelineAction>(numbers[1]), numbers[2], numbers[3]);
  }

  // Microseconds, and levels of which only changes are kept.
  void read_levels(const Numbers& times) {
    Numbers levels(kLevelNumbers), now;
    std::size_t row = 0;
    for (bool more = true; more && in_.end() == JsonStream::End::open; more = in_.next_element(), row++) {
      const std::uint64_t at = in_.offset();
      now.clear();
      const bool whole = row == 0 ? rest_of_list(now) : list(now);  // the first one was entered
      if (!whole && in_.end() != JsonStream::End::open) break;
      std::int64_t time_ns = 0;
      if (!whole || now.size() != kLevelNumbers || row >= times.size() ||
          __builtin_mul_overflow(times[row], std::int64_t{1000}, &time_ns)) {
        note_bad(at);
        continue;
      }
      add_changes(time_ns, levels, now);
      levels = now;
    }
  }

  void add_changes(std::int64_t time_ns, const Numbers& before, const Numbers& now) {
    for (std::size_t i = 1; i < kLevelNumbers; i++) {
      std::int64_t change = 0;
      if (__builtin_sub_overflow(now[i], before[i], &change)) continue;
      if (change != 0) add(time_ns, TimelineAction::level, change, static_cast<std::int64_t>(i - 1));
    }
  }

  void add(std::int64_t time_ns, TimelineAction action, std::int64_t bytes, std::int64_t category) {
    MemoryTimeline& rows = trace.memory_timeline;
    rows.time_ns.push_back(time_ns);
    rows.action.push_back(action);
    rows.bytes.push_back(bytes);
    rows.category.push_back(static_cast<std::uint8_t>(category));
  }

  void note_bad(std::uint64_t at) {
    add_issue(trace.issues,
              {"timeline_bad_rows", Severity::lost,
               "rows are not of the form [time, action 1 to 4, bytes, category 0 to 7], or of nine levels, "
               "and were left out",
               "Check what wrote or changed the file", 1, trace.source.path, at, std::nullopt});
  }

  void note_end() {
    Source& source = trace.source;
    source.compressed = file_.compressed();
    source.file_bytes = file_.file_bytes();
    source.text_bytes = file_.text_bytes();
    source.events = trace.memory_timeline.size();
    note_gzip_damage(trace, file_.damage());
    if (in_.end() == JsonStream::End::open) return;
    const bool cut = in_.end() == JsonStream::End::cut;
    add_issue(trace.issues, {cut ? "timeline_cut" : "timeline_broken", Severity::lost,
                             cut ? "the file ends inside the timeline; all rows before were read"
                                 : "JSON goes wrong here; all rows before were read",
                             "Copy or export the file again", 1, source.path, in_.offset(), std::nullopt});
  }

  struct Row {
    std::uint64_t at = 0;
    bool whole = false;
    Numbers numbers;
  };

  formats::TextFile& file_;
  JsonStream in_;
  std::optional<Row> second_;
};

Result<std::vector<Trace>> read_file(const std::string& path, const ReadOptions& options) {
  auto file = formats::TextFile::open(path, options.max_text_bytes);
  if (!file) return fail(file.error());
  TimelineFile timeline(*file, path, options.chunk_bytes);
  if (auto done = timeline.read(); !done) return fail(done.error());
  std::vector<Trace> traces;
  traces.push_back(std::move(timeline.trace));
  return traces;
}

Result<std::vector<std::string>> no_text(const Trace& trace, std::span<const std::uint64_t>) {
  return fail({ErrorKind::unsupported, "a memory timeline has no events with arguments", trace.source.path,
               std::nullopt, "Use the table memory_timeline"});
}

}  // namespace

Reader memory_timeline_reader() {
  return {"memory_timeline", "torch.profiler's export_memory_timeline (.raw.json.gz, .json)", recognizes, read_file,
          no_text};
}

}  // namespace stepscope::read
