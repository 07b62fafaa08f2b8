// for_each_index: the same work for 0 … count − 1, shared out among threads one index at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace stepscope {

// The cores that this process may use, at least 1.
unsigned usable_cores();

// `work(i)` must not throw and may run at the same time as that of any other index.
template <class Work>
void for_each_index(std::size_t count, unsigned threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i; (i = next++) < count;) work(i);
  };
  std::vector<std::thread> helpers;
  for (std::size_t i = 1; i < threads && i < count; i++) helpers.emplace_back(run);
  run();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace stepscope
