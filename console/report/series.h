#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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
  /// Values in a row that are NaN or infinite.
  struct Gap {
    double first_step = 0;
    double last_step = 0;
    std::int64_t count = 0;
  };
  static constexpr std::size_t kMostPieces = 1000;
  static constexpr std::size_t kMostGaps = 100;  ///< what comes after these belongs to the last one
  static constexpr std::size_t kRecent = 10;

  /// `step` isn't before the last one's.
  void add(double step, double value);
  bool empty() const { return pieces_.empty() && gaps_.empty(); }
  const std::vector<Piece>& pieces() const { return pieces_; }
  const std::vector<Gap>& gaps() const { return gaps_; }

  /// The mean of the last finite values, at most kRecent. NaN: there is none.
  double recent_mean() const;
  /// The last finite value; NaN: there is none.
  double last() const;

 private:
  std::vector<Piece> pieces_;
  std::vector<Gap> gaps_;
  std::deque<double> recent_;
  std::int64_t values_a_piece_ = 1;
  bool in_gap_ = false;
};

/// Neighbours joined, until there are at most `most` pieces.
std::vector<Series::Piece> thinned(std::vector<Series::Piece> pieces, std::size_t most);

/// What a reader's eye does with a noisy curve: the pieces' means, each averaged with those on both sides, so
/// that the line doesn't lag. The weight of a piece halves in about 0.7 * `window` of them. What comes before
/// one of `breaks`, steps in their order, has no weight behind it, nor the other way: a jump stays one.
std::vector<double> smoothed(const std::vector<Series::Piece>& pieces, double window,
                             const std::vector<double>& breaks = {});

}  // namespace footplate::report
