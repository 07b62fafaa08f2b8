#include "diff/pairs.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

namespace stepscope::diff {
namespace {

constexpr double kAlike = 0.6, kAlikeAnywhere = 0.85;  // at one place; where no place is known
constexpr std::size_t kMostTogether = 12;              // more left over at one place is a crowd, not a replacement
constexpr std::size_t kMostChoices = 10'000;

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// "AddBackward0" → Add, Backward0; "sgemm_128x64" → sgemm, 128x64. Sorted.
std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < name.size();) {
    while (at < name.size() && !is_word(name[at])) at++;
    const std::size_t begin = at;
    while (at < name.size() && is_word(name[at]) && (at == begin || !is_upper(name[at]) || is_upper(name[at - 1])))
      at++;
    if (at > begin) words.push_back(name.substr(begin, at - begin));
  }
  std::sort(words.begin(), words.end());
  return words;
}

// "autograd::engine::evaluate_function: AddBackward0" → "AddBackward0"; kernels, which have arguments, stay.
std::string_view bare_op(std::string_view name) {
  if (name.find('<') != std::string_view::npos || name.find('(') != std::string_view::npos) return name;
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

using Ids = std::vector<std::uint32_t>;

// The rows of one level that have no partner yet.
struct Left {
  Ids a, b;
};

double total(const Values& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

class Matcher {
 public:
  Matcher(const Side& a, const Side& b, const StringPool& names) : a_(a), b_(b), names_(names) {}

  void match(Level level);
  std::vector<Pair> pairs;

 private:
  using Key = std::tuple<StringId, StringId, StringId>;
  using KeyOf = std::function<Key(const Entity&)>;
  struct Place {
    Ids a, b;
  };

  void pair(Match match, Ids a, Ids b) { pairs.push_back({level_, match, std::move(a), std::move(b)}); }
  std::map<Key, Place> places(const KeyOf& key_of) const;
  void drop_paired(const std::vector<bool>& done_a, const std::vector<bool>& done_b);
  void by_key(Match match, const KeyOf& key_of);
  void by_fused_name(bool fused_in_b);
  void by_place();
  void alike_at(Place& place, double enough);
  StringId context_of(const Entity& entity, bool in_b) const;
  double per_step(const Side& side, std::uint32_t id) const {
    return side.walls.empty() ? 0 : total(side.entities[id].count) / static_cast<double>(side.walls.size());
  }
  std::string_view name(const Side& side, std::uint32_t id) const { return names_[side.entities[id].name]; }

  const Side& a_;
  const Side& b_;
  const StringPool& names_;
  Level level_ = Level::step;
  Left left_;
  std::unordered_map<std::uint32_t, StringId> renamed_ops_;  // name in b → name in a
};

StringId Matcher::context_of(const Entity& entity, bool in_b) const {
  if (!in_b) return entity.context;
  const auto found = renamed_ops_.find(static_cast<std::uint32_t>(entity.context));
  return found == renamed_ops_.end() ? entity.context : found->second;
}

std::map<Matcher::Key, Matcher::Place> Matcher::places(const KeyOf& key_of) const {
  std::map<Key, Place> found;
  for (const std::uint32_t id : left_.a) found[key_of(a_.entities[id])].a.push_back(id);
  for (const std::uint32_t id : left_.b) {
    Entity entity{.name = b_.entities[id].name, .detail = b_.entities[id].detail};
    entity.context = context_of(b_.entities[id], true);
    found[key_of(entity)].b.push_back(id);
  }
  return found;
}

void Matcher::drop_paired(const std::vector<bool>& done_a, const std::vector<bool>& done_b) {
  std::erase_if(left_.a, [&](std::uint32_t id) { return done_a[id]; });
  std::erase_if(left_.b, [&](std::uint32_t id) { return done_b[id]; });
}

// Rows of equal key: one to one in order of first use where there are as many, else all as one.
void Matcher::by_key(Match match, const KeyOf& key_of) {
  std::vector<bool> done_a(a_.entities.size()), done_b(b_.entities.size());
  for (auto& [key, place] : places(key_of)) {
    if (place.a.empty() || place.b.empty()) continue;
    for (const std::uint32_t id : place.a) done_a[id] = true;
    for (const std::uint32_t id : place.b) done_b[id] = true;
    if (place.a.size() != place.b.size()) {
      pair(match, place.a, place.b);
      continue;
    }
    for (std::size_t i = 0; i < place.a.size(); i++) pair(match, {place.a[i]}, {place.b[i]});
  }
  drop_paired(done_a, done_b);
}

// "triton_poi_fused_add_gelu_3" stands for the kernels that aten::add and aten::gelu launched.
void Matcher::by_fused_name(bool fused_in_b) {
  std::vector<bool> done_a(a_.entities.size()), done_b(b_.entities.size());
  auto& done_fused = fused_in_b ? done_b : done_a;
  auto& done_parts = fused_in_b ? done_a : done_b;
  const Side& fused_side = fused_in_b ? b_ : a_;
  const Side& parts_side = fused_in_b ? a_ : b_;
  for (const std::uint32_t fused : fused_in_b ? left_.b : left_.a) {
    const auto words = words_of(name(fused_side, fused));
    if (!std::binary_search(words.begin(), words.end(), "fused")) continue;
    Ids parts;
    for (const std::uint32_t part : fused_in_b ? left_.a : left_.b) {
      const std::string_view bare = bare_op(names_[parts_side.entities[part].context]);
      if (!done_parts[part] && !bare.empty() && std::binary_search(words.begin(), words.end(), bare))
        parts.push_back(part);
    }
    if (parts.empty()) continue;
    for (const std::uint32_t part : parts) done_parts[part] = true;
    done_fused[fused] = true;
    fused_in_b ? pair(Match::fused, parts, {fused}) : pair(Match::fused, {fused}, parts);
  }
  drop_paired(done_a, done_b);
}

// One to one, the most alike first.
void Matcher::alike_at(Place& place, double enough) {
  struct Choice {
    double likeness;
    std::uint32_t a, b;
  };
  std::vector<Choice> choices;
  for (const std::uint32_t a : place.a) {
    for (const std::uint32_t b : place.b) {
      const double found = likeness(name(a_, a), name(b_, b));
      if (found >= enough) choices.push_back({found, a, b});
    }
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& x, const Choice& y) { return x.likeness > y.likeness; });
  for (const Choice& choice : choices) {
    const auto a = std::find(place.a.begin(), place.a.end(), choice.a);
    const auto b = std::find(place.b.begin(), place.b.end(), choice.b);
    if (a == place.a.end() || b == place.b.end()) continue;
    place.a.erase(a);
    place.b.erase(b);
    pair(Match::renamed, {choice.a}, {choice.b});
  }
}

void Matcher::by_place() {
  std::vector<bool> done_a(a_.entities.size(), true), done_b(b_.entities.size(), true);
  for (auto& [key, place] : places([](const Entity& e) { return Key{StringId::none, StringId::none, e.context}; })) {
    const bool crowd = place.a.size() > kMostTogether || place.b.size() > kMostTogether;
    const bool somewhere = std::get<2>(key) != StringId::none;
    if (place.a.size() * place.b.size() <= kMostChoices) alike_at(place, somewhere ? kAlike : kAlikeAnywhere);
    if (!place.a.empty() && !place.b.empty() && somewhere && !crowd) {
      const bool one = place.a.size() == 1 && place.b.size() == 1;
      const bool as_often = one && per_step(a_, place.a[0]) == per_step(b_, place.b[0]);
      pair(as_often ? Match::renamed : Match::replaced, place.a, place.b);
      place = {};
    }
    for (const std::uint32_t id : place.a) done_a[id] = false;
    for (const std::uint32_t id : place.b) done_b[id] = false;
  }
  drop_paired(done_a, done_b);
}

void Matcher::match(Level level) {
  level_ = level;
  left_ = {};
  for (std::uint32_t i = 0; i < a_.entities.size(); i++) {
    if (a_.entities[i].level == level) left_.a.push_back(i);
  }
  for (std::uint32_t i = 0; i < b_.entities.size(); i++) {
    if (b_.entities[i].level == level) left_.b.push_back(i);
  }
  by_key(Match::same, [](const Entity& e) { return Key{e.name, e.detail, e.context}; });
  by_key(Match::moved, [](const Entity& e) { return Key{e.name, e.detail, StringId::none}; });
  if (level == Level::op || level == Level::kernel || level == Level::collective) {
    by_key(Match::shape_changed, [](const Entity& e) { return Key{e.name, StringId::none, e.context}; });
  }
  if (level == Level::kernel) {
    by_fused_name(true);
    by_fused_name(false);
  }
  const std::size_t before = pairs.size();
  if (level == Level::op || level == Level::kernel || level == Level::module) by_place();
  for (std::size_t i = before; level == Level::op && i < pairs.size(); i++) {
    if (pairs[i].match != Match::renamed) continue;
    const StringId now = b_.entities[pairs[i].b.front()].name, then = a_.entities[pairs[i].a.front()].name;
    renamed_ops_.try_emplace(static_cast<std::uint32_t>(now), then);
  }
  for (const std::uint32_t id : left_.a) pair(Match::only_a, {id}, {});
  for (const std::uint32_t id : left_.b) pair(Match::only_b, {}, {id});
}

}  // namespace

std::string_view to_string(Match match) {
  static constexpr std::array<std::string_view, 8> names{"same",    "moved",    "shape changed", "fused",
                                                         "renamed", "replaced", "only in A",     "only in B"};
  return names[static_cast<std::size_t>(match)];
}

double likeness(std::string_view a, std::string_view b) {
  const auto in_a = words_of(bare_op(a)), in_b = words_of(bare_op(b));
  if (in_a.empty() || in_b.empty()) return a == b ? 1 : 0;
  std::vector<std::string_view> both;
  std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::back_inserter(both));
  return 2 * static_cast<double>(both.size()) / static_cast<double>(in_a.size() + in_b.size());
}

std::vector<Pair> pair_up(const Side& a, const Side& b, const StringPool& names) {
  Matcher matcher(a, b, names);
  for (std::size_t level = 0; level < kLevels; level++) matcher.match(static_cast<Level>(level));
  return std::move(matcher.pairs);
}

}  // namespace stepscope::diff
