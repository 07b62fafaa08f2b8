// Which slice of a timeline is which node of an execution trace of the same rank and steps.
//
// Evidence, best first: the record function id, which both recorders wrote down; the autograd sequence number and name;
// the order of names on the thread. Files without record function ids (execution traces of schema 1.0.1, timelines of
// old) are aligned thread by thread (name_alignment.h). Device work belongs to the node of the operator around its
// launch. Input: one trace with nodes alone, one derived timeline; up to 10^6 nodes and 10^7 slices; O(n log n).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/trace.h"

namespace stepscope::graph {

inline constexpr std::uint32_t kNoNode = 0xffffffff;

enum class LinkEvidence : std::uint8_t { none, record_function_id, sequence_number, name_order };
inline constexpr std::size_t kLinkEvidences = 4;
std::string_view to_string(LinkEvidence evidence);
std::string_view meaning_of(LinkEvidence evidence);

struct Link {
  std::vector<SliceId> slice;                         // per node: none where nothing shows which one it is
  std::vector<LinkEvidence> evidence;                 // per node
  std::vector<std::uint32_t> node_of;                 // per row of the timeline's device table: its node, or kNoNode
  std::uint64_t operators = 0;                        // nodes that a timeline can show: no threads, processes, groups
  std::array<std::uint64_t, kLinkEvidences> nodes{};  // of the operators, by evidence
  std::uint64_t other_name = 0;  // nodes whose record function id is that of a slice with another name
  // Pieces of device work: of a node; launched before or after everything that is linked; the rest.
  std::uint64_t device_linked = 0, device_outside = 0, device_unlinked = 0;

  std::uint64_t linked() const { return operators - nodes[0]; }
  double coverage() const;  // 0 without operators
};

bool is_operator(NodeKind kind);

Link find_link(const Trace& graph, const Trace& timeline);

inline constexpr double kLeastCoverage = 0.5;
// An error below kLeastCoverage, with the reason and what to do: what is built on such a link would be about nothing.
Result<void> covers_enough(const Link& link, const Trace& graph, const Trace& timeline);

}  // namespace stepscope::graph
