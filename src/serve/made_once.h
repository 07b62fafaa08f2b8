// Something that takes its time to make, made when it is first asked for. While one thread makes it the others are told
// so instead of waiting: those that answer are few.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

namespace stepscope::serve {

template <class T>
class MadeOnce {
 public:
  // nullptr: somebody else is having it made just now.
  template <class Make>
  const T* get(const Make& make) const {
    if (made_) return value_.get();
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return nullptr;
    if (!made_) {
      value_ = std::make_unique<const T>(make());
      made_ = true;
    }
    return value_.get();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const T> value_;
  mutable std::atomic<bool> made_{false};  // then no lock is asked
};

}  // namespace stepscope::serve
