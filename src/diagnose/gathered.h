// The work that a cause is about, with what its fix leaves of it, on its way to a finding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/heaviest.h"

namespace stepscope::diagnose {

struct Words {
  std::string_view cause;  // family of causes: "host", "memory" …
  std::string sentence, next;
  std::string_view doubt = {};   // what is inferred and not recorded; empty: nothing, so the cause is sure
  std::string_view called = {};  // "set_num_threads": whose only call in the program is the place
};

// Calls `visit(node, work)` for all work of the run.
template <class Visit>
void for_each_work(const Case& about, const Visit& visit) {
  for (std::uint32_t node = 0; node < about.size(); node++) {
    if (about.is_work(node)) visit(node, about.work(node));
  }
}

class Gathered {
 public:
  explicit Gathered(const Case& about) : about_(about) {}

  // The fix leaves between `least` and `most` (0 to 1) of the node's time beyond `call_ns`, which it costs to call
  // anything; `name`: what the work is called where it is told.
  void add(std::uint32_t node, const Work& work, std::string_view name, double least, double most,
           std::int64_t call_ns = 0);
  // The same for several nodes of one kind of work.
  void add(const std::vector<std::uint32_t>& nodes, std::string_view name, double least, double most,
           std::int64_t call_ns = 0);
  // The same with new costs.
  void add_ns(std::uint32_t node, const Work& work, std::string_view name, std::int64_t least_ns, std::int64_t most_ns);
  // Work that goes along with what was added, and names no place.
  void add_along(std::uint32_t node, double least, double most);
  // So are operators that are faster once communication beside them is gone.
  void add_relieved(const std::vector<std::uint32_t>& gone);
  // What the fix does not make any more it does not give back to the system either; what these nodes give is made all
  // the same. Call when all else was added.
  void add_outputs(const std::vector<std::uint32_t>& made = {});
  // The fix takes away that the thread of the node waits there for a device; `late`: what it then does on the path
  // while the device has nothing to do.
  void add_wait(std::uint32_t node, const Work& work, std::string_view name, const std::vector<std::uint32_t>& late);
  // The same of a wait that goes along with what was added.
  void add_wait_along(std::uint32_t node, const std::vector<std::uint32_t>& late);

  // Of the path, all steps together.
  std::int64_t time_ns() const { return names_.total_ns() + along_ns_; }
  bool worth_saying() const { return !names_.empty() && about_.share(time_ns()) >= kWorthSaying; }
  const Heaviest& names() const { return names_; }
  // What is heaviest names the place, unless `called` is what the program calls once to have it so; the evidence begins
  // with the share of the steps. Needs some work.
  Diagnosis diagnosis(const Words& words) const;

 private:
  const Case& about_;
  Heaviest names_;
  simulate::Rewrite rewrite_;
  std::unordered_set<std::uint32_t> explains_;
  std::int64_t along_ns_ = 0;  // on the path

  std::int64_t without_wait(std::uint32_t node, const std::vector<std::uint32_t>& late);  // what is late, on the path
  std::int64_t new_on_path(std::uint32_t node) { return explains_.insert(node).second ? about_.on_path(node) : 0; }
};

}  // namespace stepscope::diagnose
