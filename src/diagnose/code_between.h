// Code of the program between operators, on the threads of the steps: what it was busy with, function by function.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "diagnose/cause.h"

namespace stepscope::diagnose {

// What a stretch of code does, by what it calls of Python's or torch's own.
enum class Doing : std::uint8_t {
  unknown,     // no frames are recorded
  computing,   // none of the others
  saving,      // torch.save, pickle
  exchanging,  // objects of Python with other ranks, which are pickled
  logging,     // print, logging, TensorBoard
  reading,     // files
  talking,     // sockets
  collecting,  // Python's garbage
  limited,     // nothing, until a service may be asked again
  sleeping,    // nothing, on purpose
  waiting,     // nothing, until it is given something to do
  compiling,   // torch.compile
};

struct BetweenOperators {
  std::uint32_t node = 0;
  Doing doing = Doing::unknown;
  Code code;
};

// Of a model that comes from a file: torch.load(), or load_state_dict(), which also takes the weights of another model.
enum class PartOfLoad : std::uint8_t { none, reads, puts };
PartOfLoad part_of_load(const Code& code);

// Stretches that are too long for what lies between two operators anyway.
std::vector<BetweenOperators> code_between(const Case& about);

// A finding for each function of the program that is busy with it and has part of the steps. What remains of it when
// it is mended is between these shares.
struct WordsOf {
  Doing doing;
  std::string_view cause, sentence, next;  // the function is named behind the sentence
  double least = 0, most = 0.05;
  std::string_view called = {};  // what the program calls for it; where it does so once, that is the place
  bool too_often = false;        // to be done less often: the place is where that function is called
};
void find_code_between(const Case& about, const WordsOf& words, std::vector<Diagnosis>& out);

}  // namespace stepscope::diagnose
