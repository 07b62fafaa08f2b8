// The run as a graph that can be played, made when the first answer asks for it: advice and prices share it.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>

#include "base/result.h"
#include "model/answer.h"
#include "model/trace.h"
#include "simulate/predict.h"

namespace stepscope::session {

class Player {
 public:
  explicit Player(const Run& run);  // which outlives this

  const Run& run() const { return run_; }
  std::size_t slices() const { return slices_; }
  // So large that a report is not to take twice its time and memory for it.
  bool is_large() const;
  // From any thread.
  const simulate::Predictor& predictor();

 private:
  const Run& run_;
  std::size_t slices_ = 0;
  std::once_flag once_;
  std::unique_ptr<const simulate::Predictor> predictor_;
};

inline constexpr std::string_view kAdvice = "advice";
// The answer of that name; an error for a run that is too large, or where nothing can be played.
Result<Answer> titled_advice(const Run& run, Player& player);

}  // namespace stepscope::session
