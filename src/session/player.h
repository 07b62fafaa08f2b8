// The run as a graph that can be played, made when the first answer asks for it: advice and prices share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/result.h"
#include "model/answer.h"
#include "model/finding_order.h"
#include "model/trace.h"
#include "simulate/predict.h"

namespace stepscope::session {

class Player {
 public:
  enum class Patience : std::uint8_t { of_a_report, endless };

  Player(const Run& run, Patience patience);  // the run outlives this

  const Run& run() const { return run_; }
  std::size_t slices() const { return slices_; }
  // So large that a report is not to take several times its time and memory for it.
  bool is_large() const;
  // From any thread.
  const simulate::Predictor& predictor();

 private:
  const Run& run_;
  Patience patience_;
  std::size_t slices_ = 0;
  std::once_flag once_;
  std::unique_ptr<const simulate::Predictor> predictor_;
};

// The answer kAdvice; an error for a run that is too large, or where nothing can be played.
Result<Answer> titled_advice(const Run& run, Player& player);

}  // namespace stepscope::session
