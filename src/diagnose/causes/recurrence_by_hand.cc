// A recurrent layer whose turns are made by a loop in Python, one moment after the other: torch has the loop inside of
// one operator, and multiplies what comes in for all moments at once.
#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/loops.h"
#include "diagnose/operators.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::array<std::string_view, 4> kCells{"aten::lstm_cell", "aten::gru_cell", "aten::rnn_tanh_cell",
                                                 "aten::rnn_relu_cell"};

// Gates, of what comes in and of the state that is carried. Where a turn does anything else, as to look at other
// moments or to choose a word, what comes in may depend on the state.
bool is_recurrence(const Loop& loop) {
  bool cell = false, product = false, sigmoid = false, tanh = false;
  for (std::size_t i = 0; i < loop.period; i++) {
    const std::string_view name = loop.trace->name(loop.operations[i].slice);
    if (std::find(kCells.begin(), kCells.end(), name) != kCells.end()) {
      cell = true;
    } else if (is_product(name)) {
      product = true;
    } else if (!is_elementwise(name) && !is_view(name) && name != "aten::cat" && name != "aten::stack") {
      return false;
    }
    sigmoid |= name == "aten::sigmoid" || name == "aten::sigmoid_";
    tanh |= name == "aten::tanh" || name == "aten::tanh_";
  }
  return cell ? !product : product && sigmoid && tanh;  // a product beside a cell may make what comes in next
}

}  // namespace

Cause recurrence_by_hand_cause() {
  return {"recurrence_by_hand", "A recurrent layer, moment by moment",
          [](const Case& about, std::vector<Diagnosis>& out) {
            find_loops(about, is_recurrence,
                       {.cause = "host",
                        .sentence = "A loop in Python makes the turns of a recurrent layer one by one",
                        .next = "Give the whole sequence to nn.LSTM, nn.GRU or nn.RNN, which take the weights of the "
                                "cell; at least multiply what comes in by its weights for all moments at once, before "
                                "the loop",
                        .how = {.least = 0.1, .most = 0.5, .fused = true},
                        .carried = true,
                        .doubt = "that what comes in does not depend on the state is inferred"},
                       out);
          }};
}

}  // namespace stepscope::diagnose::causes
