// Where in the program's code an instant of a recording is.
//
// Python frames are recorded in one step only, after the others, since they slow it down (Run::stack_steps). What ran
// in another step is looked up there by its order: the operators of a thread are the landmarks, the third aten::mm
// between an aten::t and an aten::relu of a step is the third such one of that step. Where there are no steps, in a
// service, a moment is recorded with frames, and any turn of such an operator stands for it. A recording with frames is
// its own map.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/intervals.h"
#include "diagnose/code.h"
#include "diagnose/source.h"
#include "model/answer.h"
#include "model/leaf_time.h"
#include "model/python_frames.h"
#include "model/trace.h"

namespace stepscope::diagnose {

class CodePlaces {
 public:
  explicit CodePlaces(const Run& run);

  bool known(const Trace& trace) const;
  // Of an outermost operator on the thread of the steps.
  Code of_operator(const Trace& trace, SliceId operation) const;
  // What is around both operators: the function whose loop calls the one and then the other.
  Code around(const Trace& trace, SliceId first, SliceId second) const;
  // Which call of a function of the program calls an operator itself, with no model between; and as which operator that
  // was recorded with frames, since several may be told by one where steps differ. Slices of the trace with frames.
  struct FunctionCall {
    SliceId frame = SliceId::none;  // none: not known, or a model calls it
    SliceId operation = SliceId::none;
  };
  FunctionCall call_around(const Trace& trace, SliceId operation) const;
  // Where the program calls what is in a library's file ("torch/utils/checkpoint.py") by that name, else the loop or
  // the function in which it does. nullopt: it is not on the stack.
  std::optional<Place> call_into(const Trace& trace, const Code& code, std::string_view file,
                                 std::string_view called) const;
  // Of the code on a thread between the operators around `time_ns`, clock of the file.
  Code between(const Trace& trace, TrackId track, std::int64_t time_ns) const;
  // What the program is busy with in all ranges of the thread of the steps whose names are such, where frames are
  // recorded: such a range is one node of the graph, and has many operators between which the program's code runs.
  Code in_ranges(const Trace& trace, bool (*is_such)(std::string_view)) const;
  // Of the functions on the stack the innermost of the program's that itself calls something of that name: where the
  // program calls that function, else where that function does so. nullopt: none is there.
  std::optional<Place> way_to(const Trace& trace, const Code& code, std::string_view called) const;
  // The functions that were recorded whose names begin so, those with most time first; none where no frames are known.
  std::vector<PythonFrame> called_functions(const Trace& trace, std::string_view begins) const;
  // What the program calls there, where frames are known that of the recording with frames. `trace` is a timeline.
  const Source& source(const Trace& trace) const;

 private:
  // An outermost operator, and which of its like in its step it is: of those with the same neighbors, and of its name.
  struct Landmark {
    SliceId slice = SliceId::none;
    std::uint64_t key = 0, name_key = 0;
    std::uint32_t turn = 0, name_turn = 0;
  };
  using Stretches = std::array<Interval, 2>;  // of no length: there is none
  struct Map {
    explicit Map(const Trace& with_code) : source(with_code.code) {}

    Source source;
    const Trace* frames = nullptr;  // the trace that has them
    TrackId track = TrackId::none, frames_track = TrackId::none;
    bool has_steps = false;
    std::vector<Landmark> own, other;  // of the thread of the steps, here and in that trace; by start
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_key, by_name;  // into other, by turn
    Interval frames_time;                                                           // of frames_track
    LeafTime leaves;                                                                // of frames_track
    mutable std::map<std::array<std::int64_t, 4>, Code> heaviest;                   // by stretches
    mutable std::unordered_map<SliceId, std::int64_t> symbol_lines;                 // of operators
    enum class Frame : std::uint8_t { own, model, other };
    mutable std::unordered_map<StringId, Frame> kinds;  // of frames, by their names as recorded
  };

  static std::vector<Landmark> landmarks_of(const Trace& trace, TrackId track);
  const Map* map_of(const Trace& trace) const;
  const Landmark* landmark_of(const Map& map, const Trace& trace, SliceId operation) const;
  const Landmark* same_as(const Map& map, std::size_t slot) const;
  const Code& heaviest_in(const Map& map, const Stretches& when) const;
  Code find_heaviest(const Map& map, std::span<const Interval> when) const;
  static Map::Frame kind_of(const Map& map, SliceId frame);
  Code stack_of(const Map& map, SliceId leaf) const;
  static std::int64_t symbol_line(const Map& map, SliceId operation, const Code& code);
  static std::int64_t take_out_comprehensions(const Map& map, std::vector<CodeFrame>& stack);
  static bool is_comprehension_of(const Map& map, const CodeFrame& around, const CodeFrame& frame);

  std::vector<Map> maps_;  // per timeline
  const Run& run_;
};

}  // namespace stepscope::diagnose
