// Copies of the whole state of a model that are made in the steps and kept: of the best weights, of the last good ones.
#include <algorithm>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

// Below the program's function is Python's copy.deepcopy, or that function goes through the state and copies it itself.
bool copies_state(const Source& source, const Code& code, bool clones) {
  const CodeFrame* own = code.own();
  if (own == nullptr) return false;
  const CodeFrame* end = code.stack.data() + code.stack.size();
  const bool deep = std::any_of(own + 1, end, [](const CodeFrame& frame) {
    return frame.function == "deepcopy" && frame.file.ends_with("copy.py");
  });
  return deep || (clones && source.calls(*own, "state_dict") && source.calls(*own, "clone"));
}

// Of the same function of the program, as it gives the copy before back.
bool is_beside(const Source& source, const Code& code, const Code& copies) {
  const CodeFrame *a = code.own(), *b = copies.own();
  return a != nullptr && b != nullptr && source.is_one_function(*a, *b);
}

}  // namespace

Cause state_copies_cause() {
  return {"state_copies", "Copies of a model's state", [](const Case& about, std::vector<Diagnosis>& out) {
            const Passes& pass = passes(about);
            Gathered copied(about);
            for (const Operator& one : forward_operators(about)) {
              if (!pass.backward(*one.trace, one.slice).empty()) continue;
              const Code code = about.code(*one.trace, one.slice);
              const Source& source = about.places.source(*one.trace);
              if (!copies_state(source, code, one.name == "aten::clone")) continue;
              copied.add(pass.nodes(*one.trace, one.slice), one.name, 0, 0.05);
              for (const std::uint32_t node : one.after) {
                const Work work = about.work(node);
                const Code behind = about.code(work);
                if (is_beside(source, behind, code)) copied.add(node, work, "code between operators", 0, 0.1);
              }
            }
            if (!copied.worth_saying()) return;
            // Where it is not said what is copied, it may be anything that has tensors.
            const Work& example = copied.names().first().example;
            const Code code = about.code(example);
            const bool of_model =
                code.own() != nullptr && about.places.source(*example.trace).calls(*code.own(), "state_dict");
            out.push_back(copied.diagnosis(
                {.cause = "host",
                 .sentence = of_model ? "The state of a model is copied in the steps, into new memory each time"
                                      : "Tensors are copied with copy.deepcopy in the steps, into new memory each time",
                 .next = "Copy it less often, as every hundred steps or behind an evaluation, or into tensors that are "
                         "there: torch._foreach_copy_(kept, current)"}));
          }};
}

}  // namespace stepscope::diagnose::causes
