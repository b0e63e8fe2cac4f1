#include "console/launch/supervise/restart_policy.h"

#include <algorithm>
#include <utility>

#include "console/launch/run_dir/missing_result.h"
#include "run_files/starts.h"

namespace footplate {
namespace {

constexpr int kDoNotCount = 10;
constexpr std::chrono::seconds kLongestPause{60};
constexpr int kLongestPauseAfter = 6;  ///< doublings

/// A step that was skipped counts, and is no progress: the parameters are those that the start began with.
bool has_only_skipped(const RunResult& result, std::int64_t first_step) {
  return result.skipped && result.step - *result.skipped <= first_step;
}

}  // namespace

void RestartPolicy::ended(int start, const RunResult& result, bool has_done_a_step) {
  const bool is_progress = has_done_a_step && result.step > failed_at_.value_or(-1);
  in_vain_ = is_progress ? 0 : in_vain_ + 1;
  if (has_done_a_step) without_a_host_ = 0;
  has_trained_ = has_trained_ || has_done_a_step;
  did_a_step_ = has_done_a_step;
  start_ = start;
  result_ = result;
}

RestartPolicy::Decision RestartPolicy::decide(bool host_was_lost) {
  if (!is_worth_restarting(result_)) return {};
  if (host_was_lost && !did_a_step_ && most_ > 0 && without_a_host_ < kDoNotCount) {
    ++without_a_host_;
    return {.again = true, .counts = false, .why_not = {}};
  }
  if (restarts_ >= most_) return {};
  if (!asked_) {
    if (!has_trained_) return {};  // nothing says that it ever could
    const std::string failed = run_ + " failed at step " + std::to_string(result_.step);
    if (const std::int64_t first = first_step_of(directory_, start_); has_only_skipped(result_, first))
      return {.again = false,
              .why_not = failed + ", and no step since step " + std::to_string(first) +
                         " was finite: it is not started again; --restarts K starts it all the same"};
    if (std::exchange(failed_at_, result_.step) == result_.step)
      return {.again = false,
              .why_not = failed + " twice, and is not started again; --restarts K starts it all the same"};
  }
  failed_at_ = result_.step;
  ++restarts_;
  return {.again = true, .counts = true, .why_not = {}};
}

std::chrono::seconds RestartPolicy::pause() const {
  return std::min(kLongestPause, std::chrono::seconds(1 << std::min(in_vain_, kLongestPauseAfter)));
}

}  // namespace footplate
