#pragma once

#include <chrono>

namespace footplate {

/// What ends a sleep from another thread or a signal handler: an eventfd.
class WakeEvent {
 public:
  WakeEvent();
  ~WakeEvent();
  WakeEvent(const WakeEvent&) = delete;
  WakeEvent& operator=(const WakeEvent&) = delete;

  /// Any thread; async-signal-safe.
  void wake() noexcept;

  /// What ended a wait(): any of these, or none where the time had passed.
  struct Woken {
    bool by_wake = false;
    bool fd0 = false;
    bool fd1 = false;
    bool fd2 = false;
    bool at_all() const { return by_wake || fd0 || fd1 || fd2; }
  };

  /// Sleeps until wake(), until one of the descriptors (-1: none) is readable, or until `at_most` has passed.
  /// Forgets the wakes so far.
  Woken wait(std::chrono::nanoseconds at_most, int fd0, int fd1, int fd2 = -1);

 private:
  int fd_;
};

}  // namespace footplate
