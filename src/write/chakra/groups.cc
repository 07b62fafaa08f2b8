#include "write/chakra/groups.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "formats/json_text.h"

namespace stepscope::write::chakra {
namespace {

constexpr std::int64_t kMostRanks = 1 << 20;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct Said {
  std::string name;
  std::int64_t size = 0;
  std::vector<std::int64_t> ranks;  // empty: all, or not given
};

std::vector<std::int64_t> numbers_of(std::string_view list) {
  std::vector<std::int64_t> numbers;
  std::size_t at = list.find('[');
  while (at < list.size() && static_cast<std::int64_t>(numbers.size()) < kMostRanks) {
    at = formats::skip_space(list, at + 1);
    const std::size_t end = list.find_first_of(",]", at);
    if (end == list.npos || end == at) break;
    numbers.push_back(formats::value_int(list.substr(at, end - at), -1));
    at = end;
  }
  return numbers;
}

// "[{"pg_name": "0", "ranks": [], "group_size": 2, …}, …]", as execution traces have it.
std::vector<Said> groups_in_text(std::string_view text) {
  std::vector<Said> all;
  for (std::size_t at = text.find('{'); at < text.size(); at = text.find('{', at)) {
    Said said;
    std::size_t end = at;
    for (const auto& member : formats::members(text.substr(at), &end)) {
      if (member.key == "pg_name") said.name = formats::value_text(member.value);
      if (member.key == "group_size") said.size = formats::value_int(member.value, 0);
      if (member.key == "ranks") said.ranks = numbers_of(member.value);
    }
    all.push_back(std::move(said));
    at += std::max<std::size_t>(end, 1);
  }
  return all;
}

std::vector<Said> groups_said(const Trace& trace) {
  std::vector<Said> all;
  for (const ProcessGroup& group : trace.groups) all.push_back({group.name, group.size, group.ranks});
  for (const Metadata& said : trace.metadata) {
    if (said.key != "process_groups") continue;
    for (Said& group : groups_in_text(said.json)) all.push_back(std::move(group));
  }
  return all;
}

void take_names(const StringPool& strings, const Column<StringId>& names, std::set<std::string>& all) {
  for (const StringId name : names) {
    if (name != StringId::none) all.emplace(strings[name]);
  }
}

}  // namespace

Groups groups_of(const Run& run) {
  std::set<std::string> names;
  std::int64_t world = 0;
  std::vector<Said> said;
  for (const Trace& trace : run.traces) {
    take_names(trace.strings, trace.nodes.group_name.values(), names);
    take_names(trace.strings, trace.collectives.group_name, names);
    world = std::max(world, trace.rank.world_size);
    for (Said& group : groups_said(trace)) {
      names.insert(group.name);
      world = std::max(world, group.size);
      said.push_back(std::move(group));
    }
  }
  Groups groups;
  std::int64_t next = 1;
  for (const std::string& name : names) {
    if (is_number(name)) next = std::max<std::int64_t>(next, std::stoll(name) + 1);
  }
  for (const std::string& name : names) {
    groups.number_of[name] = name.empty() || is_number(name) ? name : std::to_string(next++);
  }
  for (Said& group : said) {
    auto& ranks = groups.ranks_of[groups.number_of[group.name]];
    if (group.ranks.empty() && group.size > 0 && group.size == world && group.size <= kMostRanks) {
      for (std::int64_t rank = 0; rank < group.size; rank++) group.ranks.push_back(rank);
    }
    const bool whole = group.size == 0 || static_cast<std::int64_t>(group.ranks.size()) == group.size;
    if (whole && group.ranks.size() > ranks.size()) ranks = std::move(group.ranks);
  }
  return groups;
}

}  // namespace stepscope::write::chakra
