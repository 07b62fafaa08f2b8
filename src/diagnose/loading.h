// The waits for a torch.utils.data.DataLoader on the threads of the steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/cause.h"

namespace stepscope::diagnose {

enum class LoadsIn : std::uint8_t { main_process, workers, unknown };

struct Loading {
  LoadsIn where = LoadsIn::unknown;
  std::vector<std::uint32_t> nodes;
  std::uint32_t longest = simulate::kNone;  // of these
  std::int64_t time_ns = 0;                 // on the path
  Code code;                                // of the program's own, where it loads itself
  Code making;                              // the function of the program that is busiest below the loader; empty: none
  std::optional<double> idle_cores;         // of the machine
  std::optional<double> busy_workers;       // cores that they use; not known: not sampled
  bool waiting_workers = false;             // they make batches, but have no core for most of that time: they wait
  // As often as many batches that more workers could make on the idle cores; not known: what is busy was not sampled.
  std::optional<double> room;
  // Of the batches that the program asked for those that workers had made by then; not known: not recorded.
  std::optional<double> ready;
  std::optional<bool> keeps_up;  // as the workers measured it
  // The making of batches is not what usual steps wait for, although recorded ones hardly waited.
  bool makes_in_time = false;
  // Part of its other time in which the thread of the steps could run and the workers had its core; 0: cores are idle,
  // or the workers hardly use any.
  double lost = 0;
  // The same, at most, of what threads of torch on several cores do together: all of them wait for the last.
  double lost_together = 0;
};

// The range of torch's in which the program is given a batch, and where that is loaded; none: unknown.
std::pair<SliceId, LoadsIn> given_in(const Work& work);

// Workers keep up and rest: what the steps wait for is to be handed what is there. One that works hands over late too.
bool keeps_up(const Loading& loading);

// More workers are what is missing, and not faster ones.
bool has_room(const Loading& loading);

// Idle cores of the machine for each rank on it; nullopt: not sampled.
std::optional<double> idle_cores_of_rank(const Case& about, const Loading& loading);

// Shared by the causes of a case.
const Loading& loading(const Case& about);

// A finding about it; what remains of the waits is between these shares.
Diagnosis waits_for_loader(const Case& about, const Loading& loading, std::string sentence, std::string next,
                           double least, double most);

// Where its workers are a matter of how the loader is made: there, if the program makes one alone; else false.
bool put_where_it_is_made(const Case& about, const Loading& loading, Place& where);

}  // namespace stepscope::diagnose
