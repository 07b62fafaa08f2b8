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
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/intervals.h"
#include "model/answer.h"
#include "model/leaf_time.h"
#include "model/python_frames.h"
#include "model/trace.h"

namespace stepscope::diagnose {

// "Net" of "nn.Module: Net_0", as torch calls the frame of a module; empty: it is another function.
std::string_view class_of_module_frame(std::string_view function);

struct CodeFrame : PythonFrame {
  bool own = false;  // of the program itself, not of Python, torch or another library

  // Is it called so, or does its file begin so ("torch/_dynamo/", "socket.py")?
  bool is(std::string_view function_or_file) const;
  std::string_view module_class() const { return class_of_module_frame(function); }
  bool is_module() const { return !module_class().empty(); }
};

// What the program did in a stretch: most of its time.
struct Code {
  std::vector<CodeFrame> stack;  // outermost first; empty: not known
  std::int64_t call_line = 0;    // where the innermost function of the program calls what is below it, or of the
                                 // comprehension of it that is busy itself; 0: not known
  std::int64_t caller_line = 0;  // where caller() calls that function, behind a "for"; 0: not known

  // The innermost function of the program itself; nullptr: none.
  const CodeFrame* own() const;
  // The function of the program that calls that one; nullptr: none.
  const CodeFrame* caller() const;
  // A frame from that one inwards which is called so, or whose file begins so; nullptr: none.
  const CodeFrame* below(std::string_view function_or_file) const;
  void put_into(Place& place) const;
};

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
  // Does the program's own source have a call of that name in the function of `frame`?
  bool calls(const Trace& trace, const CodeFrame& frame, std::string_view called) const;
  // Of the functions on the stack the innermost of the program's that itself calls something of that name: where the
  // program calls that function, else where that function does so. nullopt: none is there.
  std::optional<Place> way_to(const Trace& trace, const Code& code, std::string_view called) const;
  // The last "for" of the function of the program before the line that the code names; nullptr: not known.
  const CodeCall* loop_around(const Trace& trace, const Code& code) const;
  // The functions that were recorded whose names begin so, those with most time first; none where no frames are known.
  std::vector<PythonFrame> called_functions(const Trace& trace, std::string_view begins) const;
  // Does each turn of that loop need what the turn before it made? By its source: `state = cell(x, state)`.
  // `line`: what is asked about; behind the end of the loop it is none of it.
  bool carries(const Trace& trace, const CodeCall& loop, std::int64_t line) const;
  // Does that function of the program set what is there when it is done?
  bool keeps(const Trace& trace, const CodeFrame& function) const;
  // Where that function of the program calls one of that name and never uses what it gives back; nullptr: nowhere.
  const CodeCall* drops(const Trace& trace, const CodeFrame& caller, std::string_view called) const;
  // The call behind a "for" from which the program comes to one of that name: where evaluate() calls eval(), that of
  // evaluate(). nullptr: there is none.
  const CodeCall* call_in_loop(const Trace& trace, std::string_view called) const;
  // The first call of something of that name in the program's source; nullptr: there is none.
  const CodeCall* first_call(const Trace& trace, std::string_view called) const;
  // The one call of something of that name in the program's source; nullptr: there is none, or more than one.
  const CodeCall* only_call(const Trace& trace, std::string_view called) const;

 private:
  // An outermost operator, and which of its like in its step it is: of those with the same neighbors, and of its name.
  struct Landmark {
    SliceId slice = SliceId::none;
    std::uint64_t key = 0, name_key = 0;
    std::uint32_t turn = 0, name_turn = 0;
  };
  using Stretches = std::array<Interval, 2>;  // of no length: there is none
  struct Map {
    const Trace* frames = nullptr;  // the trace that has them
    TrackId track = TrackId::none, frames_track = TrackId::none;
    bool has_steps = false;
    std::vector<Landmark> own, other;  // of the thread of the steps, here and in that trace; by start
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_key, by_name;  // into other, by turn
    Interval frames_time;                                                           // of frames_track
    LeafTime leaves;                                                                // of frames_track
    std::unordered_map<std::string, std::vector<const CodeCall*>> calls;            // by file of the program
    mutable std::map<std::array<std::int64_t, 4>, Code> heaviest;                   // by stretches
    enum class Frame : std::uint8_t { own, model, other };
    mutable std::unordered_map<StringId, Frame> kinds;  // of frames, by their names as recorded
  };

  static std::vector<Landmark> landmarks_of(const Trace& trace, TrackId track);
  const Map* map_of(const Trace& trace) const;
  const Landmark* landmark_of(const Map& map, const Trace& trace, SliceId operation) const;
  static std::int64_t call_line(const Map& map, const CodeFrame& own, std::string_view called);
  static bool has_loop_before(const Map& map, const CodeFrame& own, std::int64_t line);
  const CodeCall* loop_that_calls(const Map& map, const CodeCall& call) const;
  const Landmark* same_as(const Map& map, std::size_t slot) const;
  const Code& heaviest_in(const Map& map, const Stretches& when) const;
  Code find_heaviest(const Map& map, const Stretches& when) const;
  static bool is_own(const Map& map, std::string_view file);
  static Map::Frame kind_of(const Map& map, SliceId frame);
  Code stack_of(const Map& map, SliceId leaf) const;
  static std::int64_t take_out_comprehensions(const Map& map, std::vector<CodeFrame>& stack);
  static bool is_comprehension_of(const Map& map, const CodeFrame& around, const CodeFrame& frame);

  std::vector<Map> maps_;  // per timeline
  const Run& run_;
};

}  // namespace stepscope::diagnose
