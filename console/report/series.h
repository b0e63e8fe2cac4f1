#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace footplate::report {

/// A metric over steps, thinned out as it grows: however long a run, it stays within kMostPieces, each with
/// its mean, least and greatest value, so that no spike is lost.
class Series {
 public:
  struct Piece {
    double first_step = 0;
    double last_step = 0;
    double least = 0;
    double most = 0;
    double sum = 0;
    std::int64_t count = 0;
    double mean() const { return sum / static_cast<double>(count); }
    double step() const { return (first_step + last_step) / 2; }
  };
  static constexpr std::size_t kMostPieces = 1000;

  /// `step` isn't before the last one's, `value` is finite.
  void add(double step, double value);
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::vector<Piece> pieces_;
  std::int64_t values_a_piece_ = 1;
};

}  // namespace footplate::report
