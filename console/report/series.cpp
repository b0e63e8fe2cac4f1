#include "console/report/series.h"

#include <algorithm>

namespace footplate::report {
namespace {

void append(Series::Piece& piece, const Series::Piece& next) {
  piece.last_step = next.last_step;
  piece.least = std::min(piece.least, next.least);
  piece.most = std::max(piece.most, next.most);
  piece.sum += next.sum;
  piece.count += next.count;
}

}  // namespace

void Series::add(double step, double value) {
  const Piece one{step, step, value, value, value, 1};
  if (!pieces_.empty() && pieces_.back().count < values_a_piece_)
    append(pieces_.back(), one);
  else
    pieces_.push_back(one);
  if (pieces_.size() <= kMostPieces) return;
  std::vector<Piece> halved;
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (i % 2 == 0)
      halved.push_back(pieces_[i]);
    else
      append(halved.back(), pieces_[i]);
  pieces_ = std::move(halved);
  values_a_piece_ *= 2;
}

}  // namespace footplate::report
