#include "runtime/train/checkpoint_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "runtime/comm/agree.h"
#include "runtime/train/corpus_check.h"
#include "runtime/watch/event_parts.h"

namespace footplate {
namespace {

/// An exception of this rank alone must not keep it from the agreement that all ranks enter next.
template <class T, class Body>
Result<T> attempt(const Body& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return fail(ErrorKind::failed, explain(error));
  }
}

template <class T>
Result<void> outcome_of(const Result<T>& result) {
  if (!result) return tl::unexpected(result.error());
  return {};
}

}  // namespace

/// Rank 0's state is what a checkpoint has. Where most ranks agree on another one, it isn't kept: a run that
/// went on from it would have that state on all ranks, and nothing to compare it with. Errors: failed, the
/// same on all ranks; lost.
Result<void> CheckpointDriver::check_rank_0() const {
  const int ranks = training_.world_size();
  if (ranks < 3 || training_.now.check_every == 0) return {};  // two have no majority
  auto mine = static_cast<std::int64_t>(training_.state.hash());
  std::vector<std::int64_t> all(static_cast<std::size_t>(ranks));
  if (auto gathered =
          training_.options.communicator
              .all_gather({&mine, 1, DataType::int64}, {all.data(), ranks, DataType::int64}, "state hashes")
              ->wait();
      !gathered)
    return gathered;
  for (int rank = 1; rank < ranks; ++rank) {
    const std::int64_t other = all[static_cast<std::size_t>(rank)];
    if (other == all.front() || 2 * std::count(all.begin(), all.end(), other) <= ranks) continue;
    return fail(ErrorKind::failed,
                fmt::format("rank 0's state differs from that of most ranks, and is not saved; "
                            "guard.repair{{ source = {} }} gives all ranks theirs",
                            rank));
  }
  return {};
}

tl::unexpected<Error> CheckpointDriver::not_saved(const Error& error, const std::string& tag) {
  training_.timer.enter(Phase::boundary);
  if (!training_.is_lost(error, StepGate::Interrupted::save, tag)) return tl::unexpected(error);
  return fail(ErrorKind::lost, "a rank was lost during the save; it is made again without that rank");
}

Result<SaveResult> CheckpointDriver::save(const std::string& tag) {
  if (training_.options.saver == nullptr)
    return fail(ErrorKind::refused, "this run has nowhere to save checkpoints to");
  const auto start = Progress::Clock::now();
  const TrainingPosition& position = training_.position;
  training_.timer.enter(Phase::saving);
  if (auto sound = check_rank_0(); !sound) return not_saved(sound.error(), tag);
  const auto saved = attempt<Saved>([&] {
    return training_.options.saver->save({position.step, tag, training_.state, training_.options.settings,
                                          to_json(training_.progress()), position.best()});
  });
  if (auto agreed = agree(training_.options.communicator, outcome_of(saved)); !agreed)
    return not_saved(agreed.error(), tag);
  training_.timer.enter(Phase::boundary);
  const bool same = saved->bytes == 0 && last_ == saved->path;  // of rank 0, which alone tells it
  last_ = saved->path;
  const std::chrono::duration<double> seconds = Progress::Clock::now() - start;
  const SaveResult result{
      saved->path, position.step, seconds.count(), static_cast<std::uint64_t>(saved->bytes), tag, ""};
  if (same) return result;
  reporter_.publish(result);
  reporter_.say(fmt::format("step {}: saved {} in {:.1f} s", position.step, saved->path, seconds.count()));
  return result;
}

void CheckpointDriver::save_or_warn(const std::string& tag) {
  if (training_.options.saver == nullptr) return;
  const auto saved = save(tag);
  if (saved || training_.rank() != 0) return;
  const std::int64_t step = training_.position.step;
  const std::string text = fmt::format("step {}: no checkpoint: {}", step, saved.error().message);
  reporter_.log(text);
  reporter_.publish(warning_at(WarningKind::other, step, text));
}

Result<void> CheckpointDriver::load(const std::string& checkpoint) {
  if (training_.options.saver == nullptr)
    return fail(ErrorKind::refused, "this run has nowhere to load checkpoints from");
  const auto progress = attempt<TrainingProgress>([&] {
    return training_.options.saver->load(checkpoint, training_.state).and_then([](const Json& json) {
      TrainingProgress read;
      return read_json(json, read).map([&] { return read; });
    });
  });
  if (auto agreed = agree(training_.options.communicator, outcome_of(progress)); !agreed) return agreed;
  training_.take_progress(*progress);
  other_corpus_ = other_corpus(progress->corpus, training_.corpus);
  last_ = checkpoint;
  training_.options.progress.at_step(training_.position.step);
  reporter_.say(fmt::format("going on from step {} of {}", training_.position.step, checkpoint));
  return {};
}

void CheckpointDriver::tell_other_corpus() {
  const std::string text = std::exchange(other_corpus_, "");
  if (!text.empty()) reporter_.warn(WarningKind::corpus, training_.position.step, text);
}

}  // namespace footplate
