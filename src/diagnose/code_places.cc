#include "diagnose/code_places.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "diagnose/operators.h"
#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

// The thread of the steps; without any the one with most operators.
TrackId main_thread(const Trace& trace) {
  for (const Step& step : trace.steps) {
    if (step.track != TrackId::none) return step.track;
  }
  std::map<TrackId, std::size_t> operators;
  for (const SliceId op : trace.ops.slice) operators[trace.slices.track[op]]++;
  const auto most = std::max_element(operators.begin(), operators.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == operators.end() ? TrackId::none : most->first;
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) { return (a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2))); }

std::uint64_t key_of(std::string_view name) { return std::hash<std::string_view>()(name); }

// A part of the function around it; in newer Pythons only a generator is a frame of its own.
bool is_comprehension(std::string_view function) {
  constexpr std::array<std::string_view, 4> names{"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"};
  return std::find(names.begin(), names.end(), function) != names.end();
}

constexpr std::string_view kHooks = "_stepscope_hooks/";

// Does it run for the recording alone?
bool is_of_recorder(const CodeFrame& frame) { return frame.file.find(kHooks) != std::string::npos; }

// What is called through it is the job's: the loader's next batch, a backward pass, a request.
bool is_wrapper(const CodeFrame& frame) {
  return is_of_recorder(frame) && (frame.file.ends_with("phases.py") || frame.file.ends_with("request_threads.py"));
}

// From the first slice of a thread to the end of the last.
Interval time_of(const Trace& trace, TrackId track) {
  const auto t = static_cast<std::size_t>(track);
  const std::uint32_t begin = trace.track_begin[t], end = trace.track_begin[t + 1];
  if (begin == end) return {0, 0};
  Interval time{trace.slices.start_ns[trace.by_track[begin]], 0};
  for (std::uint32_t i = begin; i < end; i++) time.end = std::max(time.end, trace.slices.end_ns(trace.by_track[i]));
  return time;
}

}  // namespace

CodePlaces::CodePlaces(const Run& run) : run_(run) {
  for (const Trace& trace : timelines(run)) {
    const Trace* frames = trace_with_frames(run, trace);
    Map& map = maps_.emplace_back(frames == nullptr ? trace : *frames);
    map.frames = frames;
    if (map.frames == nullptr) continue;
    map.track = main_thread(trace);
    map.frames_track = main_thread(*map.frames);
    if (map.track == TrackId::none || map.frames_track == TrackId::none) {
      map.frames = nullptr;
      continue;
    }
    map.has_steps = has_steps(trace);
    map.own = landmarks_of(trace, map.track);
    map.other = landmarks_of(*map.frames, map.frames_track);
    if (map.other.empty()) {
      map.frames = nullptr;
      continue;
    }
    for (std::uint32_t i = 0; i < map.other.size(); i++) {
      map.by_key[map.other[i].key].push_back(i);
      map.by_name[map.other[i].name_key].push_back(i);
    }
    map.frames_time = time_of(*map.frames, map.frames_track);
    map.leaves = LeafTimes(*map.frames).of(map.frames_track);
  }
}

std::vector<CodePlaces::Landmark> CodePlaces::landmarks_of(const Trace& trace, TrackId track) {
  std::vector<Landmark> marks;
  const auto t = static_cast<std::size_t>(track);
  std::vector<StepId> steps;
  for (std::uint32_t i = trace.track_begin[t]; i < trace.track_begin[t + 1]; i++) {
    const SliceId slice = trace.by_track[i];
    if (trace.kind(slice) != SliceKind::cpu_op) continue;
    // Outermost: the operators before it on this thread have ended.
    if (!marks.empty() && trace.slices.end_ns(marks.back().slice) > trace.slices.start_ns[slice]) continue;
    marks.push_back({.slice = slice, .name_key = key_of(trace.name(slice))});
    steps.push_back(trace.step_at(trace.slices.start_ns[slice]));
  }
  std::unordered_map<std::uint64_t, std::uint32_t> turns, name_turns;
  for (std::size_t i = 0; i < marks.size(); i++) {
    if (i > 0 && steps[i] != steps[i - 1]) turns.clear(), name_turns.clear();
    const std::uint64_t before = i > 0 ? marks[i - 1].name_key : 0,
                        after = i + 1 < marks.size() ? marks[i + 1].name_key : 0;
    marks[i].key = mixed(mixed(before, marks[i].name_key), after);
    marks[i].turn = turns[marks[i].key]++;
    marks[i].name_turn = name_turns[marks[i].name_key]++;
  }
  return marks;
}

const CodePlaces::Map* CodePlaces::map_of(const Trace& trace) const {
  const auto index = static_cast<std::size_t>(&trace - run_.traces.data());
  return index < maps_.size() && maps_[index].frames != nullptr ? &maps_[index] : nullptr;
}

bool CodePlaces::known(const Trace& trace) const { return map_of(trace) != nullptr; }

const Source& CodePlaces::source(const Trace& trace) const {
  static const std::vector<CodeCall> no_code;
  static const Source no_source(no_code);
  const auto index = static_cast<std::size_t>(&trace - run_.traces.data());
  return index < maps_.size() ? maps_[index].source : no_source;
}

const CodePlaces::Landmark* CodePlaces::same_as(const Map& map, std::size_t slot) const {
  const Landmark& mark = map.own[slot];
  const auto find = [&](const auto& index, std::uint64_t key, std::uint32_t turn) -> const Landmark* {
    const auto found = index.find(key);
    if (found == index.end()) return nullptr;
    // Without steps the same comes again and again: any of its turns is one of these.
    const std::size_t last = found->second.size() - 1;
    return &map.other[found->second[map.has_steps ? std::min<std::size_t>(turn, last) : turn % (last + 1)]];
  };
  if (const Landmark* same = find(map.by_key, mark.key, mark.turn)) return same;
  return find(map.by_name, mark.name_key, mark.name_turn);
}

const CodePlaces::Landmark* CodePlaces::landmark_of(const Map& map, const Trace& trace, SliceId operation) const {
  const std::int64_t start_ns = trace.slices.start_ns[operation];
  const auto at = std::lower_bound(map.own.begin(), map.own.end(), start_ns, [&](const Landmark& mark, std::int64_t t) {
    return trace.slices.start_ns[mark.slice] < t;
  });
  if (at == map.own.end() || at->slice != operation) return nullptr;
  return same_as(map, static_cast<std::size_t>(at - map.own.begin()));
}

Code CodePlaces::of_operator(const Trace& trace, SliceId operation) const {
  const Map* map = map_of(trace);
  if (map == nullptr) return {};
  const Landmark* same = landmark_of(*map, trace, operation);
  if (same == nullptr) return {};
  Code code = stack_of(*map, map->frames->slices.parent[same->slice]);
  const CodeFrame* own = code.own();
  if (own == nullptr || code.call_line > 0) return code;
  // `a @ b` calls nothing that has a frame, `1 - a` what torch writes in Python.
  const CodeFrame* below = own + 1 == code.stack.data() + code.stack.size() ? nullptr : own + 1;
  if (below == nullptr || below->is("torch/_tensor.py")) {
    const auto [known, is_new] = map->symbol_lines.try_emplace(same->slice, 0);
    if (is_new) known->second = symbol_line(*map, same->slice, code);
    code.call_line = known->second;
  }
  return code;
}

// Where a function of the program has the operator of Python's that an operator is called by: between the calls next to
// it whose lines are known.
std::int64_t CodePlaces::symbol_line(const Map& map, SliceId operation, const Code& code) {
  constexpr int kMost = 16;             // calls that are looked at in each direction
  constexpr std::size_t kDeepest = 64;  // slices between the function and what it calls
  const Trace& frames = *map.frames;
  const Slices& slices = frames.slices;
  const CodeFrame& own = *code.own();
  std::string_view symbol = symbol_of(frames.name(operation));
  // `2 / a` multiplies with 1 / a.
  if (code.below("__rdiv__") != nullptr || code.below("__rtruediv__") != nullptr) symbol = "/";
  if (symbol.empty()) return 0;
  std::vector<SliceId> around;  // up to the frame of the function
  for (SliceId at = slices.parent[operation]; at != SliceId::none; at = slices.parent[at]) {
    around.push_back(at);
    if (frames.kind(at) == SliceKind::python_function && kind_of(map, at) == Map::Frame::own) break;
    if (around.size() == kDeepest) return 0;
  }
  const auto is_around = [&](SliceId slice) { return std::find(around.begin(), around.end(), slice) != around.end(); };
  const auto t = static_cast<std::size_t>(map.frames_track);
  const auto begin = frames.by_track.begin() + frames.track_begin[t],
             end = frames.by_track.begin() + frames.track_begin[t + 1];
  const auto first_at = [&](std::int64_t start_ns) {
    return std::lower_bound(begin, end, start_ns,
                            [&](SliceId slice, std::int64_t ns) { return slices.start_ns[slice] < ns; });
  };
  // Of what the function called: the outermost around a slice, none where that is in no call of this function.
  const auto neighbor = [&](SliceId slice) {
    for (std::size_t up = 0; slice != SliceId::none && !is_around(slices.parent[slice]); up++) {
      slice = up < kDeepest * kDeepest ? slices.parent[slice] : SliceId::none;
    }
    return slice;
  };
  const auto line_of = [&](SliceId call) -> std::int64_t {
    if (frames.kind(call) != SliceKind::python_function) return 0;
    return map.source.only_call_line(own, read_python_frame(frames.name(call)).function);
  };
  std::int64_t before = 0, behind = 0;
  auto at = first_at(slices.start_ns[operation]);
  for (int i = 0; i < kMost && before == 0 && at != begin; i++) {
    const SliceId call = neighbor(*--at);
    if (call == SliceId::none || is_around(call)) break;  // the function's beginning
    before = line_of(call);
    at = first_at(slices.start_ns[call]);
  }
  at = first_at(slices.end_ns(operation));
  for (int i = 0; i < kMost && behind == 0 && at != end; i++) {
    const SliceId call = neighbor(*at);
    if (call == SliceId::none) break;  // its end
    behind = line_of(call);
    at = std::max(first_at(slices.end_ns(call)), at + 1);
  }
  const std::int64_t line = map.source.symbol_line(own, symbol, before, behind);
  // `0 < a` asks whether a > 0.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTurned{
      {{"<", ">"}, {">", "<"}, {"<=", ">="}, {">=", "<="}}};
  for (const auto& [from, to] : kTurned) {
    if (line == 0 && symbol == from) return map.source.symbol_line(own, to, before, behind);
  }
  return line;
}

Code CodePlaces::around(const Trace& trace, SliceId first, SliceId second) const {
  const Map* map = map_of(trace);
  if (map == nullptr) return {};
  const Landmark *one = landmark_of(*map, trace, first), *other = landmark_of(*map, trace, second);
  if (one == nullptr || other == nullptr) return {};
  const Trace& frames = *map->frames;
  std::unordered_set<SliceId> around_one;
  for (SliceId at = frames.slices.parent[one->slice]; at != SliceId::none; at = frames.slices.parent[at]) {
    around_one.insert(at);
  }
  // From the innermost frame around both; what is called there is the frame below it around the first.
  SliceId at = frames.slices.parent[other->slice];
  while (at != SliceId::none && (!around_one.contains(at) || frames.kind(at) != SliceKind::python_function)) {
    at = frames.slices.parent[at];
  }
  if (at == SliceId::none) return {};
  Code code = stack_of(*map, at);
  SliceId called = SliceId::none;
  for (SliceId up = frames.slices.parent[one->slice]; up != at; up = frames.slices.parent[up]) {
    if (frames.kind(up) == SliceKind::python_function) called = up;
  }
  const CodeFrame* own = code.own();
  if (called != SliceId::none && own != nullptr && own + 1 == code.stack.data() + code.stack.size()) {
    const std::int64_t line = map->source.looped_call_line(*own, read_python_frame(frames.name(called)).function);
    if (line > 0) code.call_line = line;
  }
  return code;
}

CodePlaces::FunctionCall CodePlaces::call_around(const Trace& trace, SliceId operation) const {
  const Map* map = map_of(trace);
  const Landmark* same = map == nullptr ? nullptr : landmark_of(*map, trace, operation);
  if (same == nullptr) return {};
  const Slices& slices = map->frames->slices;
  for (SliceId at = slices.parent[same->slice]; at != SliceId::none; at = slices.parent[at]) {
    if (map->frames->kind(at) != SliceKind::python_function) continue;
    const Map::Frame kind = kind_of(*map, at);
    if (kind != Map::Frame::other) return {kind == Map::Frame::own ? at : SliceId::none, same->slice};
  }
  return {};
}

std::optional<Place> CodePlaces::call_into(const Trace& trace, const Code& code, std::string_view file,
                                           std::string_view called) const {
  const Map* map = map_of(trace);
  const auto into = std::find_if(code.stack.begin(), code.stack.end(),
                                 [&](const CodeFrame& frame) { return frame.file.starts_with(file); });
  if (map == nullptr || into == code.stack.end()) return std::nullopt;
  Code outside;
  outside.stack.assign(code.stack.begin(), into);
  const CodeFrame* own = outside.own();
  if (own == nullptr) return std::nullopt;
  const CodeFrame& below = code.stack[static_cast<std::size_t>(own - outside.stack.data()) + 1];
  Place place{.function = own->function, .file = own->file, .line = map->source.call_line(*own, called)};
  if (*place.line == 0) place.line = map->source.call_line(*own, below.function);
  if (*place.line > 0) return place;
  const CodeCall* loop = map->source.loop_around(outside);
  place.line = loop == nullptr ? own->line : loop->line;
  return place;
}

Code CodePlaces::between(const Trace& trace, TrackId track, std::int64_t time_ns) const {
  const Map* map = map_of(trace);
  if (map == nullptr || track != map->track || map->own.empty()) return {};
  const auto after = std::upper_bound(
      map->own.begin(), map->own.end(), time_ns,
      [&](std::int64_t time, const Landmark& mark) { return time < trace.slices.start_ns[mark.slice]; });
  const Trace& frames = *map->frames;
  // From the end of the landmark before to the start of the one after it; where these are not neighbors there, one of
  // them alone says where it is.
  Interval when{0, 0};
  const Landmark *before = nullptr, *next = nullptr;
  if (after != map->own.begin()) before = same_as(*map, static_cast<std::size_t>(after - map->own.begin()) - 1);
  if (after != map->own.end()) next = same_as(*map, static_cast<std::size_t>(after - map->own.begin()));
  const Landmark *first = &map->other.front(), *last = &map->other.back();
  if (before == last && next == first) {  // from a step to the next one: there it is at both ends
    return heaviest_in(*map, {Interval{frames.slices.end_ns(last->slice), map->frames_time.end},
                              Interval{map->frames_time.start, frames.slices.start_ns[first->slice]}});
  }
  if (before != nullptr) {
    when = {frames.slices.end_ns(before->slice),
            before == last ? map->frames_time.end : frames.slices.start_ns[before[1].slice]};
  }
  if (when.end <= when.start && next != nullptr) {
    when = {next == first ? map->frames_time.start : frames.slices.end_ns(next[-1].slice),
            frames.slices.start_ns[next->slice]};
  }
  return heaviest_in(*map, {when, Interval{0, 0}});
}

Code CodePlaces::in_ranges(const Trace& trace, bool (*is_such)(std::string_view)) const {
  const Map* map = map_of(trace);
  if (map == nullptr) return {};
  const Trace& frames = *map->frames;
  const auto t = static_cast<std::size_t>(map->frames_track);
  std::vector<Interval> ranges;
  for (std::uint32_t i = frames.track_begin[t]; i < frames.track_begin[t + 1]; i++) {
    const SliceId slice = frames.by_track[i];
    if (frames.kind(slice) == SliceKind::python_function || !is_such(frames.name(slice))) continue;
    ranges.push_back({frames.slices.start_ns[slice], frames.slices.end_ns(slice)});
  }
  return find_heaviest(*map, make_intervals(std::move(ranges)));
}

std::optional<Place> CodePlaces::way_to(const Trace& trace, const Code& code, std::string_view called) const {
  const Map* map = map_of(trace);
  if (map == nullptr) return std::nullopt;
  for (std::size_t i = code.stack.size(); i-- > 0;) {
    const CodeFrame& frame = code.stack[i];
    const std::int64_t line = frame.own ? map->source.call_line(frame, called) : 0;
    if (line == 0) continue;
    for (std::size_t up = i; up-- > 0;) {
      const CodeFrame& caller = code.stack[up];
      if (!caller.own) continue;
      const std::int64_t from = map->source.call_line(caller, frame.function);
      if (from > 0) return Place{.function = caller.function, .file = caller.file, .line = from};
      break;
    }
    return Place{.function = frame.function, .file = frame.file, .line = line};
  }
  return std::nullopt;
}

std::vector<PythonFrame> CodePlaces::called_functions(const Trace& trace, std::string_view begins) const {
  const Map* map = map_of(trace);
  if (map == nullptr) return {};
  const Trace& frames = *map->frames;
  std::map<StringId, std::int64_t> time;  // by the name as recorded; -1: another function
  for (std::size_t i = 0; i < frames.slices.size(); i++) {
    const auto slice = static_cast<SliceId>(i);
    if (frames.kind(slice) != SliceKind::python_function) continue;
    const auto [at, is_new] = time.try_emplace(frames.slices.name[slice], 0);
    if (is_new && !read_python_frame(frames.name(slice)).function.starts_with(begins)) at->second = -1;
    if (at->second >= 0) at->second += frames.slices.dur_ns[slice];
  }
  std::vector<std::pair<std::int64_t, StringId>> found;
  for (const auto& [name, ns] : time) {
    if (ns >= 0) found.emplace_back(-ns, name);
  }
  std::sort(found.begin(), found.end());
  std::vector<PythonFrame> out;
  for (const auto& [ns, name] : found) out.push_back(read_python_frame(frames.strings[name]));
  return out;
}

const Code& CodePlaces::heaviest_in(const Map& map, const Stretches& when) const {
  const auto [known, is_new] = map.heaviest.try_emplace(
      {when[0].start, when[0].end, when[1].start, when[1].end});  // every step asks for the same
  if (is_new) known->second = find_heaviest(map, when);
  return known->second;
}

// The function of the program that most of the time belongs to, with the frame below it that has most of that.
Code CodePlaces::find_heaviest(const Map& map, std::span<const Interval> stretches) const {
  std::map<SliceId, std::int64_t> by_leaf;
  const auto& pieces = map.leaves.pieces;
  for (const Interval when : stretches) {
    auto piece = std::upper_bound(pieces.begin(), pieces.end(), when.start,
                                  [](std::int64_t time, const Leaf& leaf) { return time < leaf.start_ns; });
    if (piece != pieces.begin()) --piece;
    for (; piece != pieces.end() && piece + 1 != pieces.end() && piece->start_ns < when.end; ++piece) {
      const std::int64_t ns = std::min((piece + 1)->start_ns, when.end) - std::max(piece->start_ns, when.start);
      if (ns > 0 && piece->slice != SliceId::none) by_leaf[piece->slice] += ns;
    }
  }
  struct Called {
    std::int64_t ns = 0;
    Code code;
  };
  struct Busy {
    std::int64_t ns = 0;
    std::map<std::string, Called> called;  // by what it calls; "": its own work
  };
  std::map<std::pair<std::string, std::int64_t>, Busy> functions;
  std::int64_t seen_ns = 0;
  for (const auto& [leaf, ns] : by_leaf) {
    Code code = stack_of(map, leaf);
    if (std::any_of(code.stack.begin(), code.stack.end(), is_of_recorder)) continue;
    const CodeFrame* own = code.own();
    Busy& function =
        functions[own == nullptr ? std::pair(std::string(), std::int64_t{0}) : std::pair(own->file, own->line)];
    function.ns += ns;
    seen_ns += ns;
    const bool calls = own != nullptr && own + 1 < code.stack.data() + code.stack.size();
    Called& called = function.called[calls ? own[1].function : ""];
    if (called.ns == 0) called.code = std::move(code);
    called.ns += ns;
  }
  const auto less = [](const auto& a, const auto& b) { return a.second.ns < b.second.ns; };
  const auto most = std::max_element(functions.begin(), functions.end(), less);
  if (most == functions.end()) return {};
  Code code = std::max_element(most->second.called.begin(), most->second.called.end(), less)->second.code;
  code.seen_ns = seen_ns;
  return code;
}

CodePlaces::Map::Frame CodePlaces::kind_of(const Map& map, SliceId frame) {
  const auto [at, is_new] = map.kinds.try_emplace(map.frames->slices.name[frame], Map::Frame::other);
  if (is_new) {
    const PythonFrame read = read_python_frame(map.frames->name(frame));
    if (!class_of_module_frame(read.function).empty()) {
      at->second = Map::Frame::model;
    } else if (map.source.is_own(read.file)) {
      at->second = Map::Frame::own;
    }
  }
  return at->second;
}

Code CodePlaces::stack_of(const Map& map, SliceId leaf) const {
  Code code;
  const Trace& frames = *map.frames;
  for (SliceId at = leaf; at != SliceId::none; at = frames.slices.parent[at]) {
    if (frames.kind(at) != SliceKind::python_function) continue;
    CodeFrame frame{read_python_frame(frames.name(at))};
    if (is_wrapper(frame)) continue;
    frame.own = map.source.is_own(frame.file);
    code.stack.push_back(std::move(frame));
  }
  std::reverse(code.stack.begin(), code.stack.end());
  const std::int64_t comprehension_line = take_out_comprehensions(map, code.stack);
  const CodeFrame* own = code.own();
  if (const CodeFrame* caller = code.caller()) {
    const std::int64_t line = map.source.call_line(*caller, caller[1].function);
    const bool in_loop = line > 0 && map.source.has_loop_before(*caller, line);
    if (in_loop && !map.source.calls_on_each(*caller, caller[1].function, line)) code.caller_line = line;
  }
  if (own == nullptr) return code;
  const bool calls = own + 1 < code.stack.data() + code.stack.size();
  if (calls) code.call_line = map.source.call_line(*own, own[1].function);
  if (code.call_line == 0) code.call_line = comprehension_line;
  return code;
}

// Comprehensions of the program are part of the function right around them. The line of the innermost, where it was
// what the innermost function of the program did; 0: none was.
std::int64_t CodePlaces::take_out_comprehensions(const Map& map, std::vector<CodeFrame>& stack) {
  std::int64_t line = 0;
  std::vector<CodeFrame> kept;
  for (CodeFrame& frame : stack) {
    // A generator may be asked for its items by what is built in: sum(), "".join().
    const auto around =
        std::find_if(kept.rbegin(), kept.rend(), [](const CodeFrame& outer) { return !outer.file.empty(); });
    if (around != kept.rend() && is_comprehension_of(map, *around, frame)) {
      line = frame.line;
      continue;
    }
    if (frame.own) line = 0;
    kept.push_back(std::move(frame));
  }
  stack = std::move(kept);
  return line;
}

bool CodePlaces::is_comprehension_of(const Map& map, const CodeFrame& around, const CodeFrame& frame) {
  return is_comprehension(frame.function) && frame.own && around.own && map.source.is_one_function(frame, around);
}

}  // namespace stepscope::diagnose
