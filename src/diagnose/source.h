// What the program's own source calls, function by function, as the hooks read it while the job ran (Trace::code).
//
// It is known by names alone: where a function calls one of a name, which loop is before a line, what a loop carries
// from turn to turn.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diagnose/code.h"
#include "model/trace.h"

namespace stepscope::diagnose {

class Source {
 public:
  explicit Source(const std::vector<CodeCall>& code);

  // Is a file the program's own? Where nothing of the source is known: is it none of Python, torch and libraries?
  bool is_own(std::string_view file) const;
  // Does that file have a function of that name which calls none of those?
  bool has_function_without(std::string_view file, std::string_view name,
                            std::span<const std::string_view> calls) const;
  // At which that function begins: frames that were there when a recording began have the line at which they were then.
  std::int64_t first_line(const CodeFrame& function) const;
  // Are both frames of one function?
  bool is_one_function(const CodeFrame& a, const CodeFrame& b) const;

  // Where that function of the program calls one of that name; of several that behind a loop's beginning, since what
  // is called before the loop of the steps is in none of them. 0: not known.
  std::int64_t call_line(const CodeFrame& function, std::string_view called) const;
  bool calls(const CodeFrame& function, std::string_view called) const { return call_line(function, called) > 0; }
  // The same where a loop calls it in its turns: of several that which most loops are around.
  std::int64_t looped_call_line(const CodeFrame& function, std::string_view called) const;
  // The one line at which that function calls one of that name; 0: there are several, or none.
  std::int64_t only_call_line(const CodeFrame& function, std::string_view called) const;
  // Where that function has such an operator of Python's ("@", "[]") between these lines; the lines may be of a loop's
  // next turn, the second before the first. 0: not known (as a bound too), or there are several, far from each other.
  std::int64_t symbol_line(const CodeFrame& function, std::string_view symbol, std::int64_t from,
                           std::int64_t to) const;
  // Does it call the one at that line on each item of a loop, as of callbacks? Then the loop does not say how often.
  bool calls_on_each(const CodeFrame& function, std::string_view called, std::int64_t line) const;
  // Where that function calls one of that name and never uses what it gives back; nullptr: nowhere.
  const CodeCall* drops(const CodeFrame& function, std::string_view called) const;
  // Does that function set what is there when it is done?
  bool keeps(const CodeFrame& function) const;
  // It gives the same whenever it is called, or called with the same (is_given), unless a function of one of these
  // names has run; nullopt: it does not, or nobody knows. Where has_constants() is false none does.
  struct Constant {
    bool is_given = false;  // something beside its object; whether that is the same, notes say (given_the_same)
    std::vector<std::string_view> unless;
  };
  std::optional<Constant> constant(const CodeFrame& function) const;
  bool has_constants() const;

  // Does that function have a "for" before that line, or at it?
  bool has_loop_before(const CodeFrame& function, std::int64_t line) const;
  // The last "for" of the function of the program before the line that the code names; nullptr: not known.
  const CodeCall* loop_around(const Code& code) const;
  // Does each turn of that loop need what the turn before it made: `state = cell(x, state)`? `line`: what is asked
  // about; behind the end of the loop it is none of it.
  bool carries(const CodeCall& loop, std::int64_t line) const;

  // The first call of something of that name; nullptr: there is none.
  const CodeCall* first_call(std::string_view called) const;
  // The one call of something of that name; nullptr: there is none, or more than one.
  const CodeCall* only_call(std::string_view called) const;
  // The call behind a "for" from which the program comes to one of that name: where evaluate() calls eval(), that of
  // evaluate(). nullptr: there is none.
  const CodeCall* call_in_loop(std::string_view called) const;

  // What is so of a module in one turn of several in a step, as it was seen in the one with stacks.
  struct Turn {
    std::string_view module;            // its path
    std::size_t number = 0, count = 0;  // which turn, from 1, of how many
    const CodeCall* call = nullptr;     // where
  };
  // Calls of modules that were given the same before in the step.
  std::vector<Turn> called_again() const;
  // Backward passes that make gradients of a module which are thrown away, and where the program goes back.
  std::vector<Turn> thrown_away() const;
  // Look-ups of words in a table, of which one word fills up rows; or frames that a module is given, of which those at
  // the ends of rows are all one number. The other two are seen in that step as well.
  struct Padded {
    std::string_view module;            // path of the table, or of what is given the frames
    double filled = 0, needless = 0;    // share of the words that fill up; of them what no row of the batch needs
    const CodeCall* call = nullptr;     // where
    std::int64_t rows = 0, length = 0;  // of frames
  };
  std::vector<Padded> padded() const;
  std::vector<Padded> padded_frames() const;
  // Losses that take nothing of some places.
  struct Ignored {
    double share = 0;  // of the places
    const CodeCall* call = nullptr;
  };
  std::vector<Ignored> ignored() const;

 private:
  using Calls = std::vector<const CodeCall*>;

  const Calls& of_file(std::string_view file) const;
  const Calls& of_function(const CodeFrame& function) const;
  std::vector<Turn> turns(std::string_view before) const;
  bool is_said(const CodeFrame& function, std::string_view what) const;
  const CodeCall* loop_that_calls(const CodeCall& call) const;

  const std::vector<CodeCall>* code_;
  std::unordered_map<std::string_view, Calls> files_;
  std::unordered_map<std::string_view, std::map<std::int64_t, Calls>> functions_;  // of a file, by first line
};

// The place is a call by the program's source; which function makes it is not said there by name, nor for which module.
void put_call(const CodeCall& call, Place& place);

}  // namespace stepscope::diagnose
