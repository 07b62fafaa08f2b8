#include "diagnose/gathered.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "diagnose/beside_communication.h"
#include "diagnose/given_back.h"
#include "diagnose/passes.h"
#include "diagnose/queries.h"

namespace stepscope::diagnose {

void Gathered::add(std::uint32_t node, const Work& work, std::string_view name, double least, double most,
                   std::int64_t call_ns) {
  const std::int64_t call = std::min(work.cost_ns, call_ns);
  const auto beyond = static_cast<double>(work.cost_ns - call);
  add_ns(node, work, name, call + std::llround(least * beyond), call + std::llround(most * beyond));
}

void Gathered::add(const std::vector<std::uint32_t>& nodes, std::string_view name, double least, double most,
                   std::int64_t call_ns) {
  for (const std::uint32_t node : nodes) add(node, about_.work(node), name, least, most, call_ns);
}

void Gathered::add_ns(std::uint32_t node, const Work& work, std::string_view name, std::int64_t least_ns,
                      std::int64_t most_ns) {
  rewrite_.nodes.push_back({node, least_ns, most_ns});
  names_.add(name, work, new_on_path(node));
}

void Gathered::add_along(std::uint32_t node, double least, double most) {
  const auto cost = static_cast<double>(about_.cost_ns(node));
  rewrite_.nodes.push_back({node, std::llround(least * cost), std::llround(most * cost)});
  along_ns_ += new_on_path(node);
}

void Gathered::add_relieved(const std::vector<std::uint32_t>& gone) {
  for (const Relieved& one : relieved_of(about_, gone)) {
    if (!explains_.contains(one.node)) add_along(one.node, one.least, one.most);  // else the fix says more of it
  }
}

void Gathered::add_outputs(const std::vector<std::uint32_t>& made) {
  constexpr double kGone = 0.5, kOwnPart = 0.1;
  std::map<std::uint32_t, std::int64_t> bytes;  // per node that lets go of them
  std::unordered_set<std::uint32_t> seen(made.begin(), made.end());
  for (const auto& node : rewrite_.nodes) {
    if (!seen.insert(node.node).second) continue;
    if (static_cast<double>(node.most_ns) > kGone * static_cast<double>(about_.cost_ns(node.node))) continue;
    for (const GivenBack::Output& output : given_back(about_).outputs(node.node)) bytes[output.node] += output.bytes;
  }
  for (const auto& [node, freed_bytes] : bytes) {
    const auto freed = static_cast<double>(freed_bytes);  // no binding, which clang 14 lets no lambda have
    const auto cost = static_cast<double>(about_.cost_ns(node));
    if (explains_.contains(node) || cost <= 0) continue;
    const auto gone = [&](double bytes_per_ns) { return std::min(1 - kOwnPart, freed / bytes_per_ns / cost); };
    add_along(node, 1 - gone(kLeastBytesPerNs), 1 - gone(kMostBytesPerNs));
  }
}

void Gathered::add_wait(std::uint32_t node, const Work& work, std::string_view name,
                        const std::vector<std::uint32_t>& late) {
  names_.add(name, work, without_wait(node, late));
}

void Gathered::add_wait_along(std::uint32_t node, const std::vector<std::uint32_t>& late) {
  along_ns_ += without_wait(node, late);
}

std::int64_t Gathered::without_wait(std::uint32_t node, const std::vector<std::uint32_t>& late) {
  rewrite_.no_wait.push_back(node);
  std::int64_t late_ns = 0;
  for (const std::uint32_t one : late) late_ns += new_on_path(one);
  return late_ns;
}

Diagnosis Gathered::diagnosis(const Words& words) const {
  const Heaviest::Item& most = names_.first();
  Diagnosis found{.rewrite = rewrite_, .explains = {explains_.begin(), explains_.end()}};
  Finding& finding = found.finding;
  finding.cause = std::string(words.cause);
  finding.sentence = words.sentence;
  if (most.example.operation != SliceId::none) finding.where.op = most.name;
  about_.put_place(most.example, reason_code(about_, most.example), finding.where);
  const CodeCall* call =
      words.called.empty() ? nullptr : about_.places.source(*most.example.trace).only_call(words.called);
  if (call != nullptr) put_call(*call, finding.where);
  const std::int64_t all_ns = names_.total_ns() + along_ns_;
  finding.evidence = {{.text = "Of the steps", .value = about_.share(all_ns), .unit = Unit::ratio},
                      {.text = "Per step", .value = all_ns / about_.steps, .unit = Unit::ns}};
  if (names_.items().size() > 1) {
    finding.evidence.push_back({.text = most.name, .value = about_.share(most.ns), .unit = Unit::ratio});
    if (most.example.operation != SliceId::none) finding.evidence.back().query = calls_of(most.name);
  }
  put_doubt(finding, words.doubt);
  finding.next = words.next;
  return found;
}

}  // namespace stepscope::diagnose
