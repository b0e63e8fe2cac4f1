#include "console/report/series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace footplate::report {
namespace {

void append(Series::Piece& piece, const Series::Piece& next) {
  piece.last_step = next.last_step;
  piece.least = std::min(piece.least, next.least);
  piece.most = std::max(piece.most, next.most);
  piece.sum += next.sum;
  piece.count += next.count;
}

std::vector<Series::Piece> halved(const std::vector<Series::Piece>& pieces) {
  std::vector<Series::Piece> half;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (i % 2 == 0)
      half.push_back(pieces[i]);
    else
      append(half.back(), pieces[i]);
  return half;
}

/// `smooth` has the pieces' means, and gets those of pieces `from` to `to` averaged.
void smooth_between(std::vector<double>& smooth, std::size_t from, std::size_t to, double keep) {
  // The weights make up for what isn't there before the first piece and behind the last one.
  std::vector<double> sums(to - from), weights(to - from);
  double sum = 0, weight = 0;
  for (std::size_t i = from; i < to; ++i) {
    sums[i - from] = sum = keep * sum + smooth[i];
    weights[i - from] = weight = keep * weight + 1;
  }
  sum = weight = 0;
  for (std::size_t i = to; i > from; --i) {
    const double own = smooth[i - 1];
    smooth[i - 1] = (sums[i - 1 - from] + sum) / (weights[i - 1 - from] + weight);
    sum = keep * (sum + own);
    weight = keep * (weight + 1);
  }
}

}  // namespace

void Series::add(double step, double value) {
  if (!std::isfinite(value)) {
    if ((in_gap_ || gaps_.size() == kMostGaps) && !gaps_.empty()) {
      gaps_.back().last_step = step;
      ++gaps_.back().count;
    } else {
      gaps_.push_back({step, step, 1});
    }
    in_gap_ = true;
    return;
  }
  in_gap_ = false;
  recent_.push_back(value);
  if (recent_.size() > kRecent) recent_.pop_front();
  const Piece one{step, step, value, value, value, 1};
  if (!pieces_.empty() && pieces_.back().count < values_a_piece_)
    append(pieces_.back(), one);
  else
    pieces_.push_back(one);
  if (pieces_.size() <= kMostPieces) return;
  pieces_ = halved(pieces_);
  values_a_piece_ *= 2;
}

double Series::recent_mean() const {
  if (recent_.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(recent_.begin(), recent_.end(), 0.0) / static_cast<double>(recent_.size());
}

double Series::last() const {
  return recent_.empty() ? std::numeric_limits<double>::quiet_NaN() : recent_.back();
}

std::vector<Series::Piece> thinned(std::vector<Series::Piece> pieces, std::size_t most) {
  while (pieces.size() > std::max<std::size_t>(most, 1)) pieces = halved(pieces);
  return pieces;
}

std::vector<double> smoothed(const std::vector<Series::Piece>& pieces, double window,
                             const std::vector<double>& breaks) {
  const double keep = 1 - 1 / std::max(window, 1.0);
  std::vector<double> smooth;
  for (const Series::Piece& piece : pieces) smooth.push_back(piece.mean());
  std::size_t from = 0;
  for (const double step : breaks) {
    std::size_t to = from;
    while (to < pieces.size() && pieces[to].step() <= step) ++to;
    smooth_between(smooth, from, to, keep);
    from = to;
  }
  smooth_between(smooth, from, pieces.size(), keep);
  return smooth;
}

}  // namespace footplate::report
