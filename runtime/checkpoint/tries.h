#pragma once

#include <chrono>
#include <functional>
#include <system_error>

namespace footplate {

/// How often something is tried that a disk, or the network behind it, couldn't do.
struct Retries {
  int tries = 1;                         ///< in all
  std::chrono::milliseconds pause{250};  ///< after the first; after each further one four times as long
};

/// Five seconds of pauses: a network that comes back, a few files that somebody removes.
constexpr Retries kFourTries{.tries = 4};

/// What errno says.
std::error_code error_of_system();

/// Whether the next try may succeed where this is why the last one didn't: of devices and networks EIO,
/// ESTALE, ETIMEDOUT and their like; a full disk; what the system is short of.
bool may_pass(const std::error_code& error);

/// The tries of one piece of work. One thread.
class Tries {
 public:
  explicit Tries(Retries retries) : left_(retries.tries - 1), pause_(retries.pause) {}

  /// Whether there is another one after `error`.
  bool has_another(const std::error_code& error) const { return left_ > 0 && may_pass(error); }
  std::chrono::milliseconds pause() const { return pause_; }  ///< before it
  /// Waits for it. False: `goes_on`, which is asked all the time and may be empty, has said no.
  bool wait(const std::function<bool()>& goes_on = {});

 private:
  int left_;
  std::chrono::milliseconds pause_;
};

}  // namespace footplate
