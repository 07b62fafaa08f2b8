#include "session/player.h"

#include "diagnose/diagnosis.h"
#include "model/windows.h"

namespace stepscope::session {
namespace {

constexpr std::size_t kMostSlices = 3'000'000;

}  // namespace

Player::Player(const Run& run, Patience patience) : run_(run), patience_(patience) {
  for (const Trace& trace : timelines(run)) slices_ += trace.slices.size();
}

bool Player::is_large() const { return patience_ == Patience::of_a_report && slices_ > kMostSlices; }

const simulate::Predictor& Player::predictor() {
  std::call_once(once_, [&] { predictor_ = std::make_unique<const simulate::Predictor>(run_); });
  return *predictor_;
}

Result<Answer> titled_advice(const Run& run, Player& player) {
  Answer none;
  Result<Answer> made = none;
  if (timelines(run).empty()) {
    none.notes.push_back("Nothing that was opened says when things ran.");
    made = none;
  } else if (player.is_large()) {
    none.notes.push_back("Not made in a report of so many slices: stepscope advise PATH does it.");
    made = none;
  } else if (!player.predictor().can_play()) {
    none.notes.push_back("Nothing was recorded that could be played: no thread and no device work.");
    made = none;
  } else {
    made = diagnose::advice(run, player.predictor());
  }
  return titled(std::move(made), kAdvice, "What is worth changing first, why, and what would it give?");
}

}  // namespace stepscope::session
