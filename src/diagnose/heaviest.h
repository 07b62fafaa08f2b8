// What has most of some time, by name, with its longest piece of work as an example.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diagnose/case.h"

namespace stepscope::diagnose {

class Heaviest {
 public:
  struct Item {
    std::string name;
    std::int64_t ns = 0;  // on the path
    std::uint64_t pieces = 0;
    Work example;
  };

  void add(std::string_view name, const Work& work, std::int64_t ns) {
    const auto [at, is_new] = index_.try_emplace(std::string(name), items_.size());
    if (is_new) items_.push_back({.name = std::string(name), .example = work});
    Item& item = items_[at->second];
    item.ns += ns;
    item.pieces++;
    if (work.cost_ns > item.example.cost_ns) item.example = work;
    total_ns_ += ns;
  }

  std::int64_t total_ns() const { return total_ns_; }
  bool empty() const { return items_.empty(); }
  // Needs one at least.
  const Item& first() const {
    return *std::max_element(items_.begin(), items_.end(), [](const Item& a, const Item& b) { return a.ns < b.ns; });
  }
  const std::vector<Item>& items() const { return items_; }

 private:
  std::vector<Item> items_;
  std::unordered_map<std::string, std::size_t> index_;
  std::int64_t total_ns_ = 0;
};

}  // namespace stepscope::diagnose
