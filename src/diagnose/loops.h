// Loops of the program that call the same operators again and again: once per sample, per parameter, per word.
//
// A loop shows as the same operators in the same order many times in a row, or, where turns differ, as one call of a
// function of the program that calls the same operators very often itself. A row of layers repeats as well, but each of
// its turns is in a module of its own.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "diagnose/cause.h"

namespace stepscope::diagnose {

struct Loop {
  const Trace* trace = nullptr;
  std::vector<Operation> operations;  // turns one after the other
  std::size_t period = 1;             // operators in a turn
  // Of the backward pass, per operator of a turn: nodes of its operators, and of the code behind them.
  std::vector<std::vector<std::uint32_t>> backward, behind_backward;
  Code code;  // of the longest operator of the first turn that shows where it is called
  Phase phase = Phase::other;
  bool varied = false;  // its turns call other operators from time to time: this is one of them

  std::size_t turns() const { return operations.size() / period; }
  // Nodes of each operator of a turn over all turns, or of the code behind it; what is behind the last is none of it.
  std::vector<std::vector<std::uint32_t>> by_place(bool after) const;
};

// What calling an operator costs on a rank in this recording, whatever it is given: 2 to 20 us.
std::int64_t usual_call_ns(const Case& about, const Trace& trace);

// All of the run, of eight turns or more.
std::vector<Loop> loops(const Case& about);

// How much of the work of a call (beyond what a call costs at least) is left when all turns are one call.
struct OneCall {
  double least = 0.5, most = 1;
  double call_part = 0;  // of what calling an operator costs, that each turn costs nevertheless
  bool fused = false;    // what goes through memory element by element is done along with the products
};

// Findings about the loops for which `is_meant` is true, one for each place in the code.
struct WordsOfLoop {
  std::string_view cause, sentence, next;
  OneCall how;
  bool carried = false;  // meant are loops each of whose turns needs what the one before it made, else only others
  std::string_view doubt = {};
};
void find_loops(const Case& about, bool (*is_meant)(const Loop& loop), const WordsOfLoop& words,
                std::vector<Diagnosis>& out);

// Its turns are over tensors of many sizes, as parameters are.
bool is_over_parameters(const Loop& loop);

}  // namespace stepscope::diagnose
