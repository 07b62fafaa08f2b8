// Contract of the causes: one file each, one line in causes.list.
//
// A cause looks at the work of a run and says why some of it costs too much, where in the code, and what a fix would
// make of it. It knows principles (what work is of its kind), never names of programs, and says nothing of its worth:
// that is for the simulator.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/case.h"
#include "model/answer.h"
#include "simulate/predict.h"

namespace stepscope::diagnose {

struct Diagnosis {
  Finding finding;            // without a gain
  simulate::Rewrite rewrite;  // what the fix makes of nodes
  // Nodes that it is about although the fix leaves their cost: it takes them off the path, or shortens them at best.
  std::vector<std::uint32_t> explains = {};
  // Known without playing: from steps that are not in the recording.
  std::optional<Gain> known_gain = {};
  std::string no_gain = {};  // why nobody can tell; empty: it is played
  // What is left takes as long as now: what goes is done by other cores meanwhile, or is only done in less time.
  bool rest_stays = false;
  // By the marks of all steps, not by those recorded: these do not say in how many steps it is.
  bool is_by_marks = false;
  // A remedy for whatever the host does between launches, or for all that takes memory: what has a place and a fix of
  // its own comes before it.
  bool is_general = false;
  // It would change what is computed, and nothing shows that the job wants that: told beside the faults, after them.
  bool is_offer = false;
};

struct Cause {
  std::string_view id;       // of its findings
  std::string_view summary;  // what is wrong, in a few words
  void (*find)(const Case& about, std::vector<Diagnosis>& out);
};

namespace causes {
std::span<const Cause> causes();  // from causes/causes.list, in that order
}

// How sure a cause is: of what it only infers less than of what is recorded. Empty: nothing is inferred.
inline void put_doubt(Finding& finding, std::string_view doubt) {
  finding.confidence = doubt.empty() ? "high" : "medium";
  finding.confidence_reason = std::string(doubt);
}

// By so much of the share of a step that goes, what is left of it on the host runs faster at best, since that no longer
// takes its caches, cores and memory; at least it takes as long. How far this holds: examples/gallery/README.md.
inline constexpr double kRestFaster = 0.4;
inline double rest_at_best(const Case& about, double gone) { return about.has_device() ? 1 : 1 - kRestFaster * gone; }

// What is less of the steps is not worth a sentence.
inline constexpr double kWorthSaying = 0.02;

}  // namespace stepscope::diagnose
