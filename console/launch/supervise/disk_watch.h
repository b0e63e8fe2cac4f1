#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

namespace footplate {

/// Whether no other file can be written in `folder`: nearly all of its disk is taken, and a small one doesn't
/// fit. False where it can't be known; a quota isn't seen.
bool is_disk_full(const std::filesystem::path& folder);

/// What the ranks print reaches the terminal by log/batch.log. On a full disk it doesn't: then the supervisor
/// says why.
class DiskWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using IsFull = std::function<bool(const std::filesystem::path&)>;
  explicit DiskWatch(std::filesystem::path folder, IsFull is_full = is_disk_full)
      : folder_(std::move(folder)), is_full_(std::move(is_full)) {}

  /// What to say: once each time the disk has stayed full from one look to the next, else empty. A save that
  /// fails fills it for a moment.
  std::string look(Clock::time_point now);

 private:
  std::filesystem::path folder_;
  IsFull is_full_;
  Clock::time_point next_{};
  int full_in_row_ = 0;
};

}  // namespace footplate
