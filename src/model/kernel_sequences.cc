#include "model/kernel_sequences.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/key_index.h"
#include "model/kernel_groups.h"

namespace stepscope {
namespace {

constexpr std::size_t kLongest = 32;
constexpr std::size_t kKeptOfLength = 8;  // candidates of each length, by device time
constexpr std::size_t kMostSequences = 20;
constexpr std::int64_t kShortKernelNs = 50'000;

using Numbers = std::vector<std::uint32_t>;

struct Candidate {
  std::size_t first, length;
  std::int64_t count, device_ns;
};

class Finder {
 public:
  Finder(const Trace& trace, const std::vector<std::uint32_t>& stream) : trace_(trace), stream_(stream) {
    // Every step has letters of its own kind at its end, so that no run goes over it.
    KeyIndex letters;
    Numbers single(stream.size());
    room_.assign(stream.size(), 0);
    for (std::size_t i = 0; i < stream.size(); i++)
      single[i] = letters[static_cast<std::uint32_t>(trace.slices.name[trace.device.slice[stream[i]]])];
    for (std::size_t i = stream.size(); i-- > 0;) {
      const bool joined = i + 1 < stream.size() && trace.device.step[stream[i]] == trace.device.step[stream[i + 1]];
      room_[i] = joined ? std::min<std::size_t>(room_[i + 1] + 1, kLongest) : 1;
    }
    numbers_.push_back(std::move(single));
    for (std::size_t half = 1; half * 2 <= kLongest; half *= 2) {
      const Numbers& halves = numbers_.back();
      KeyIndex pairs;
      Numbers doubled(stream.size(), kNone);
      for (std::size_t i = 0; i < stream.size(); i++) {
        if (room_[i] >= half * 2) doubled[i] = pairs[std::uint64_t{halves[i]} << 32 | halves[i + half]];
      }
      numbers_.push_back(std::move(doubled));
    }
  }

  // Non-overlapping occurrences of every run of this length, those with the most device time.
  void look_at(std::size_t length, std::vector<Candidate>& found) const {
    KeyIndex runs;
    struct Seen {
      std::size_t first, free;  // where the next occurrence may begin
      std::int64_t count, device_ns;
    };
    std::vector<Seen> seen;
    std::int64_t window = 0;  // device time of [i, i + length)
    for (std::size_t i = 0; i < stream_.size(); i++) window += i < length ? duration(i) : 0;
    for (std::size_t i = 0; i + length <= stream_.size(); i++) {
      if (i > 0) window += duration(i + length - 1) - duration(i - 1);
      if (room_[i] < length) continue;
      const std::uint32_t at = runs[key(i, length)];
      if (at == seen.size()) seen.push_back({i, 0, 0, 0});
      if (i < seen[at].free) continue;
      seen[at].free = i + length;
      seen[at].count++;
      seen[at].device_ns += window;
    }
    std::vector<Candidate> best;
    for (const Seen& one : seen) {
      if (one.count >= 2 && !is_power(one.first, length)) best.push_back({one.first, length, one.count, one.device_ns});
    }
    const std::size_t kept = std::min(best.size(), kKeptOfLength);
    std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(kept), best.end(),
                      [](const Candidate& a, const Candidate& b) {
                        return std::pair(b.device_ns, a.first) < std::pair(a.device_ns, b.first);
                      });
    found.insert(found.end(), best.begin(), best.begin() + static_cast<std::ptrdiff_t>(kept));
  }

  // Takes the occurrences in which nothing was taken before; nothing where these are not most of them.
  bool take(const Candidate& candidate, Sequence& out, std::vector<bool>& taken) const {
    const std::uint64_t wanted = key(candidate.first, candidate.length);
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i + candidate.length <= stream_.size();) {
      const bool fits =
          room_[i] >= candidate.length && key(i, candidate.length) == wanted &&
          std::none_of(taken.begin() + static_cast<std::ptrdiff_t>(i),
                       taken.begin() + static_cast<std::ptrdiff_t>(i + candidate.length), [](bool t) { return t; });
      if (fits) places.push_back(i);
      i += fits ? candidate.length : 1;
    }
    if (places.size() < 2 || static_cast<std::int64_t>(places.size()) * 2 < candidate.count) return false;
    for (const std::size_t place : places) {
      add(out, place, candidate.length);
      std::fill_n(taken.begin() + static_cast<std::ptrdiff_t>(place), candidate.length, true);
    }
    return true;
  }

  void add(Sequence& out, std::size_t first, std::size_t length) const {
    if (out.count++ == 0)
      out.example.assign(stream_.begin() + static_cast<std::ptrdiff_t>(first),
                         stream_.begin() + static_cast<std::ptrdiff_t>(first + length));
    for (std::size_t i = first; i < first + length; i++) {
      out.device_ns += duration(i);
      if (i > first) out.gap_ns += std::max<std::int64_t>(0, start(i) - (start(i - 1) + duration(i - 1)));
    }
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  std::int64_t start(std::size_t i) const { return trace_.slices.start_ns[trace_.device.slice[stream_[i]]]; }
  std::int64_t duration(std::size_t i) const { return trace_.slices.dur_ns[trace_.device.slice[stream_[i]]]; }

  // Two overlapping powers of two cover every length; equal keys of one length are equal runs.
  std::uint64_t key(std::size_t i, std::size_t length) const {
    std::size_t power = 0;
    while ((std::size_t{2} << power) <= length) power++;
    return std::uint64_t{numbers_[power][i]} << 32 | numbers_[power][i + length - (std::size_t{1} << power)];
  }
  // Is the run a shorter one several times over? Then that one is the sequence.
  bool is_power(std::size_t first, std::size_t length) const {
    for (std::size_t part = 1; part * 2 <= length; part++) {
      if (length % part != 0) continue;
      bool same = true;
      for (std::size_t i = first; i + part < first + length && same; i++)
        same = numbers_[0][i] == numbers_[0][i + part];
      if (same) return true;
    }
    return false;
  }

  const Trace& trace_;
  const std::vector<std::uint32_t>& stream_;
  std::vector<Numbers> numbers_;   // of runs of 1, 2, 4 … pieces
  std::vector<std::size_t> room_;  // pieces from here to the end of the step
};

bool only_moves_memory(const Trace& trace, std::uint32_t row) {
  constexpr std::array<std::string_view, 10> kFamilies{"elementwise", "norm",     "activation", "copy",
                                                       "fill",        "softmax",  "dropout",    "quantization/cast",
                                                       "loss",        "reduction"};
  if (trace.kind(trace.device.slice[row]) != SliceKind::kernel) return false;
  if (trace.slices.dur_ns[trace.device.slice[row]] > kShortKernelNs) return false;
  const ClassRule* rule = rule_of(trace, row);
  return rule != nullptr && std::find(kFamilies.begin(), kFamilies.end(), rule->family) != kFamilies.end();
}

std::vector<Sequence> repeated_sequences(const Finder& finder, const std::vector<std::uint32_t>& stream) {
  std::vector<Candidate> candidates;
  for (std::size_t length = 2; length <= std::min(kLongest, stream.size() / 2); length++)
    finder.look_at(length, candidates);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.device_ns > b.device_ns; });
  std::vector<Sequence> out;
  std::vector<bool> taken(stream.size(), false);
  for (const Candidate& candidate : candidates) {
    if (out.size() == kMostSequences) break;
    Sequence sequence;
    if (finder.take(candidate, sequence, taken)) out.push_back(std::move(sequence));
  }
  return out;
}

std::vector<Sequence> fusible_runs(const Trace& trace, const Finder& finder, const std::vector<std::uint32_t>& stream) {
  KeyIndex contents;  // (content so far, next name)
  std::map<std::uint32_t, Sequence> runs;
  for (std::size_t i = 0; i < stream.size();) {
    std::size_t end = i;
    std::uint32_t content = 0xffffffff;
    while (end < stream.size() && end - i < kLongest && only_moves_memory(trace, stream[end]) &&
           trace.device.step[stream[end]] == trace.device.step[stream[i]] &&
           trace.device.phase[stream[end]] == trace.device.phase[stream[i]]) {
      const auto name = static_cast<std::uint32_t>(trace.slices.name[trace.device.slice[stream[end]]]);
      content = contents[std::uint64_t{content} << 32 | name];
      end++;
    }
    if (end - i >= 2) finder.add(runs[content], i, end - i);
    i = std::max(end, i + 1);
  }
  std::vector<Sequence> out;
  for (auto& [content, run] : runs) out.push_back(std::move(run));
  std::stable_sort(out.begin(), out.end(),
                   [](const Sequence& a, const Sequence& b) { return a.device_ns > b.device_ns; });
  return out;
}

}  // namespace

StreamSequences stream_sequences(const Trace& trace, const std::vector<std::uint32_t>& stream) {
  const Finder finder(trace, stream);
  return {repeated_sequences(finder, stream), fusible_runs(trace, finder, stream)};
}

std::vector<std::vector<std::uint32_t>> rows_by_stream(const Trace& trace, const std::vector<std::uint32_t>& rows) {
  std::map<std::int64_t, std::vector<std::uint32_t>> streams;
  for (const std::uint32_t row : rows) streams[trace.device.stream[row]].push_back(row);
  std::vector<std::vector<std::uint32_t>> out;
  for (auto& [stream, list] : streams) out.push_back(std::move(list));
  return out;
}

}  // namespace stepscope
