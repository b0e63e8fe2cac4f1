#include "runtime/watch/conclusions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <set>

#include "runtime/comm/chunks.h"

namespace footplate {
namespace {

/// A deadline twice as long as what is normal tells what isn't from what is.
constexpr double kRoom = 2;
/// How much faster, per byte, smaller operations have to be for smaller pieces to be worth a change. Means
/// vary by some ten percent; where it mattered, it was by 2.7 (chunks.h).
constexpr double kFaster = 1.5;
/// Operations of one size, for their mean to say something.
constexpr std::int64_t kCounted = 10;

/// The next number from `least` on that reads well.
double readable(double least) {
  constexpr std::array kSteps{1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0};
  const double exponent = std::floor(std::log10(least));
  const double scale = std::pow(10, std::abs(exponent));
  for (const double step : kSteps) {
    const double value = exponent < 0 ? step / scale : step * scale;
    if (value >= least) return value;
  }
  return least;
}

/// "all_reduce of gradients", "all_reduce of gradients and others"
std::string names(const std::vector<LateCollective>& late) {
  std::set<std::string> names;
  for (const auto& one : late) names.insert(fmt::format("{} of {}", to_string(one.kind), one.name));
  return *names.begin() + (names.size() > 1 ? " and others" : "");
}

std::set<std::int64_t> steps_of(const std::vector<LateCollective>& late) {
  std::set<std::int64_t> steps;
  for (const auto& one : late) steps.insert(one.step);
  return steps;
}

/// Three digits, or all before the point: "1.52", "1284".
std::string rounded(double number) {
  constexpr double kThreeDigits = 100;
  return number < kThreeDigits ? fmt::format("{:.3g}", number) : fmt::format("{:.0f}", number);
}

/// "3 steps (5 to 7)"
std::string steps_text(const std::set<std::int64_t>& steps) {
  return fmt::format("{} steps ({} to {})", steps.size(), *steps.begin(), *steps.rbegin());
}

/// Who came last each time.
std::vector<int> always_last(const std::vector<LateCollective>& late) {
  const auto same = [&](const LateCollective& one) { return one.last == late.front().last; };
  return std::all_of(late.begin(), late.end(), same) ? late.front().last : std::vector<int>();
}

/// What the fastest class of operations of `kind` reaches that ran in one piece of fewer than `elements`.
/// Waiting for late ranks is in the counts: they may be faster still, so the comparison errs to the safe
/// side.
const CollectivePattern* fastest_below(const std::vector<CollectivePattern>& counted, Collective kind,
                                       std::int64_t elements) {
  const CollectivePattern* best = nullptr;
  const auto rate = [](const CollectivePattern& one) {
    return static_cast<double>(one.bytes) / std::max(1e-9, std::chrono::duration<double>(one.total).count());
  };
  for (const auto& one : counted) {
    if (one.kind != kind || one.count < kCounted || one.at_least * 10 > elements) continue;
    if (best == nullptr || rate(one) > rate(*best)) best = &one;
  }
  return best;
}

/// Those of `kind` that took long by themselves, in pieces that can be halved.
std::vector<LateCollective> slow_by_themselves(Collective kind, std::int64_t chunk,
                                               const std::vector<LateCollective>& late) {
  std::vector<LateCollective> slow;
  for (const auto& one : late)
    if (one.by_itself && one.kind == kind && piece_of(one.elements, chunk) >= 2 * kLeastPiece)
      slow.push_back(one);
  return slow;
}

std::optional<Conclusion> smaller_pieces_of(Collective kind, std::int64_t chunk,
                                            const std::vector<LateCollective>& late,
                                            const std::vector<CollectivePattern>& counted) {
  const auto slow = slow_by_themselves(kind, chunk, late);
  const auto steps = steps_of(slow);
  if (steps.size() < kStepsForAConclusion) return std::nullopt;
  std::int64_t piece = piece_of(slow.front().elements, chunk);
  double rate = 0;  // of the fastest
  double longest_s = 0;
  for (const auto& one : slow) {
    piece = std::min(piece, piece_of(one.elements, chunk));
    rate = std::max(rate, static_cast<double>(one.bytes) / one.shortest_s);
    longest_s = std::max(longest_s, one.longest_s);
  }
  const auto smaller = [&](const LateCollective& one) { return one.elements < piece; };
  if (std::any_of(late.begin(), late.end(), smaller)) return std::nullopt;  // it isn't a matter of size
  const CollectivePattern* fastest = fastest_below(counted, kind, piece);
  if (fastest == nullptr) return std::nullopt;
  const double reached =
      static_cast<double>(fastest->bytes) / std::chrono::duration<double>(fastest->total).count();
  if (reached < kFaster * rate) return std::nullopt;
  constexpr double kMega = 1e6;
  return Conclusion{
      piece / 2,
      fmt::format("{}, in pieces of {} elements, took longer than {} ({} s) at {} with all ranks in it: "
                  "{} MB/s, where operations of {} to {} elements reach {}",
                  names(slow), piece, slow.back().setting, rounded(slow.back().limit_s), steps_text(steps),
                  rounded(rate / kMega), fastest->at_least, fastest->at_least * 10 - 1,
                  rounded(reached / kMega)),
      {},
      longest_s};
}

}  // namespace

std::int64_t piece_of(std::int64_t elements, std::int64_t chunk) {
  return std::min(elements, chunk_of(elements, chunk));
}

std::optional<Conclusion> longer_deadline(const std::string& setting, double limit_s, double most_s,
                                          const std::vector<LateCollective>& late) {
  const auto steps = steps_of(late);
  if (steps.size() < kStepsForAConclusion) return std::nullopt;
  double longest_s = 0;
  for (const auto& one : late) longest_s = std::max(longest_s, one.longest_s);
  const double wanted_s = std::min(readable(kRoom * longest_s), most_s);
  if (wanted_s <= limit_s) return std::nullopt;
  Conclusion conclusion{wanted_s, "", always_last(late), longest_s};
  conclusion.why = fmt::format("{} went past {} ({} s) at {} and ended after all, the longest after {} s",
                               names(late), setting, rounded(limit_s), steps_text(steps), rounded(longest_s));
  if (!conclusion.last.empty())
    conclusion.why += fmt::format("; rank {} came last each time", fmt::join(conclusion.last, ", "));
  return conclusion;
}

std::optional<Conclusion> smaller_pieces(std::int64_t chunk, const std::vector<LateCollective>& late,
                                         const std::vector<CollectivePattern>& counted) {
  // Only these two run in pieces.
  for (const Collective kind : {Collective::all_reduce, Collective::broadcast})
    if (auto conclusion = smaller_pieces_of(kind, chunk, late, counted)) return conclusion;
  return std::nullopt;
}

}  // namespace footplate
