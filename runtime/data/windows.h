#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/data/recordings.h"

namespace footplate {

/// Recordings cut into windows of one length, one after the other; what is left at a recording's end is no
/// window. Any thread.
class Windows {
 public:
  /// Of those recordings that are held out, or of the others; `recordings` outlive this.
  Windows(const Recordings& recordings, std::int64_t length, bool held_out);

  std::int64_t count() const { return static_cast<std::int64_t>(places_.size()); }
  std::int64_t length() const { return length_; }

  std::span<const std::int16_t> at(std::int64_t window) const {
    return with_room(window).first(static_cast<std::size_t>(length_));
  }
  /// With what is left at the recording's end, which it may be shifted by: less than two lengths.
  std::span<const std::int16_t> with_room(std::int64_t window) const {
    return places_[static_cast<std::size_t>(window)];
  }
  /// By so many samples, which `bits` decide, a window begins later: all of a recording is heard in time.
  std::int64_t shift(std::int64_t window, std::uint64_t bits) const;

 private:
  std::int64_t length_;
  std::vector<std::span<const std::int16_t>> places_;  ///< each window, and what it may be shifted by
};

}  // namespace footplate
