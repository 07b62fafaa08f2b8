// Case: what bounds the steps of a run, cut into stretches that add up to their time, with all that a cause looks at.
//
// The partition behind every finding: at each instant of the steps one thing is on the path (simulate/predict.h). A fix
// alters nodes of the graph, and explains the stretches of the path that are of these. So findings that explain the
// same time can be told, and none is played as taking more than the time that it explains.
#pragma once

#include <any>
#include <cstdint>
#include <string_view>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "diagnose/code_places.h"
#include "model/trace.h"
#include "simulate/predict.h"

namespace stepscope::diagnose {

// A node of the graph, and what it belongs to.
struct Work {
  const Trace* trace = nullptr;
  simulate::NodeRole role = simulate::NodeRole::host;
  bool device = false;
  TrackId track = TrackId::none;
  std::int64_t start_ns = 0, cost_ns = 0;  // start on the clock of its file
  SliceId slice = SliceId::none;           // what ran; none: nothing was recorded
  SliceId inside = SliceId::none;          // the same; of device work what is around its launch
  SliceId operation = SliceId::none;       // outermost operator around it, or around its launch; none: there is none

  // The program's own code on a thread of the host, outside of operators, launches and the data loader.
  bool between_operators() const { return !device && role == simulate::NodeRole::host && operation == SliceId::none; }
  std::string_view name() const { return slice == SliceId::none ? std::string_view() : trace->name(slice); }
};

// An outermost operator on the thread of the steps, and what that thread did then until the next one began.
struct Operation {
  SliceId slice = SliceId::none;
  std::int64_t cost_ns = 0, after_ns = 0;
  std::vector<std::uint32_t> nodes, after;  // of it; of the code behind it
};

struct Unrecorded;

struct Case {
  // An error where nothing can be played.
  static Result<Case> of(const Run& run, const simulate::Predictor& predictor);

  const Run& run;
  const simulate::Predictor& predictor;
  simulate::Prediction now;
  const Trace& trace;  // of the rank whose steps take longest
  std::vector<simulate::PathPiece> path;
  std::int64_t path_ns = 0, steps = 1;
  std::int64_t recording_ns = 0;   // that recorded steps take beyond usual ones, as far as is known: in no cost below
  std::vector<StepId> long_steps;  // of a kind that comes less often than it was recorded, and counts so
  CodePlaces places;

  std::size_t size() const { return predictor.graph().size(); }  // nodes
  bool is_work(std::uint32_t node) const { return predictor.graph().lane[node] != simulate::kNone; }
  Work work(std::uint32_t node) const;
  std::int64_t cost_ns(std::uint32_t node) const { return now.costs.cost_ns[node]; }
  // The steps with that, as often as they are faster than now.
  Result<simulate::Prediction> predict(const simulate::Rewrite& rewrite) const;
  // Time on the path, per node.
  std::int64_t on_path(std::uint32_t node) const { return on_path_[node]; }
  const std::vector<std::uint32_t>& path_nodes() const { return path_nodes_; }  // those that have some
  double share(std::int64_t ns) const {
    return path_ns > 0 ? static_cast<double>(ns) / static_cast<double>(path_ns) : 0;
  }
  // Does a device work, or a host launch for one?
  bool has_device() const;
  // Of the thread of the steps of a rank, by start. `trace` is a timeline.
  std::vector<Operation> operations(const Trace& trace) const;
  // The outermost operator around a slice of a timeline, itself included; none: there is none, or no slice.
  SliceId outermost(const Trace& of, SliceId slice) const;
  // Where the work comes from in the program's code; empty: not recorded.
  Code code(const Work& work) const;
  Code code(const Trace& of, SliceId operation) const { return places.of_operator(of, operation); }
  // Where a finding about it is: rank, moment, and the program's code.
  void put_place(const Work& work, const Code& code, Place& place) const;
  // What several causes look at, worked out when the first asks for it; known by its type.
  template <class T, class Make>
  const T& shared(const Make& make) const {
    std::any& kept = shared_[typeid(T)];
    if (!kept.has_value()) kept = make(*this);
    return *std::any_cast<T>(&kept);
  }

 private:
  Case(const Run& run, const simulate::Predictor& predictor, Unrecorded without);

  simulate::Rewrite unrecorded_;  // the costs of usual steps
  std::vector<std::int64_t> on_path_;
  std::vector<std::uint32_t> path_nodes_;
  std::vector<std::vector<SliceId>> outermost_;  // per timeline, per slice: the operator
  mutable std::unordered_map<std::type_index, std::any> shared_;
};

}  // namespace stepscope::diagnose
