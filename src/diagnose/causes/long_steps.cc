// Every so many steps one takes far longer, and none of these was recorded: the marks of all steps show it.
#include <fmt/format.h>

#include "diagnose/cause.h"
#include "diagnose/marked_steps.h"
#include "diagnose/queries.h"
#include "model/settings.h"

namespace stepscope::diagnose::causes {
namespace {

// What a program does every so many steps, by a call in its source.
struct Habit {
  std::string_view id, called, sentence, next;
  std::string_view doubt = "none of these steps was recorded: nothing else in the program is done now and then";
};

constexpr Habit kHabits[] = {
    {"checkpoint_in_loop", "save", "the program writes a checkpoint (save())",
     "Save less often, or from a copy in another thread or process (torch.distributed.checkpoint.async_save)"},
    {"evaluation_in_loop", "eval", "the program evaluates (eval())",
     "Evaluate less often, on fewer samples, or beside the training in another process"},
};

// By what the marks say of these steps.
constexpr double kMostlyWaiting = 0.7, kMostlyCompiling = 0.5;
constexpr Habit kNewPass{
    "loader_restarts", "", "it waits for the data loader, as where a new pass through the data begins",
    "Give the DataLoader persistent_workers=True, so that its workers and what they have prepared stay from pass to "
    "pass; without workers, make what each pass begins with once",
    "none of these steps was recorded: that a pass begins there is inferred from how often they come"};

}  // namespace

Cause long_steps_cause() {
  return {
      "long_steps", "Steps that take far longer, every so many", [](const Case& about, std::vector<Diagnosis>& out) {
        const std::optional<LongSteps> found = long_steps(about);
        if (!found || found->is_recorded || found->share < kWorthSaying) return;
        const std::optional<Recompiled> again = recompiled(about);
        if (found->compiling >= kMostlyCompiling && again && again->share >= kWorthSaying)
          return;  // a cause of its own
        const Source& source = about.places.source(about.trace);
        const Habit* habit = nullptr;
        const CodeCall* call = nullptr;
        std::size_t candidates = 0;
        for (const Habit& one : kHabits) {
          const CodeCall* first = source.first_call(one.called);
          if (first == nullptr) continue;
          const CodeCall* in_loop = source.call_in_loop(one.called);
          habit = &one, call = in_loop == nullptr ? first : in_loop;
          candidates++;
        }
        if (candidates != 1) habit = nullptr, call = nullptr;
        const bool by_turns = number_set(about.trace, "loader_workers") == found->every;  // workers that cannot keep up
        const bool evaluates = habit != nullptr && habit->id == "evaluation_in_loop";     // which has a loader too
        if (found->waiting >= kMostlyWaiting && !by_turns && !evaluates)
          habit = &kNewPass, call = source.only_call("(workers)");
        Diagnosis rare;
        Finding& finding = rare.finding;
        finding.cause = "host";
        finding.sentence = fmt::format("Every {} steps one takes far longer", found->every);
        finding.where.rank = about.trace.rank.rank;
        if (habit != nullptr) {
          finding.id = std::string(habit->id);
          finding.sentence += fmt::format(": {}", habit->sentence);
        }
        if (call != nullptr) put_call(*call, finding.where);
        finding.evidence = {{.text = "Of all marked steps' time",
                             .value = found->share,
                             .unit = Unit::ratio,
                             .query = marks_of_steps()},
                            {.text = "Longer by", .value = found->more_ns, .unit = Unit::ns},
                            {.text = "Such steps", .value = found->count, .unit = Unit::count}};
        put_doubt(finding,
                  habit == nullptr ? "none of these steps was recorded, so what they do is not known" : habit->doubt);
        finding.next = habit == nullptr ? "Record one of them: stepscope run --steps with its number, which the "
                                          "answer history has"
                                        : std::string(habit->next);
        const double left = 1 - found->share;
        rare.known_gain = Gain{.speedup_low = 1 / (left + 0.1 * found->share),
                               .speedup_high = 1 / left,
                               .binds = about.now.binds,
                               .how = "from the marks of all steps"};
        out.push_back(std::move(rare));
      }};
}

}  // namespace stepscope::diagnose::causes
