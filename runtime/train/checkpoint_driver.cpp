#include "runtime/train/checkpoint_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "run_files/checkpoint_folders.h"
#include "runtime/base/times.h"
#include "runtime/comm/agree.h"
#include "runtime/train/corpus_check.h"
#include "runtime/watch/event_parts.h"

namespace footplate {
namespace {

/// What rank 0 tells of a save that is to be made again, before its tag.
const std::string kAgain = "again ";

/// However often it has failed.
constexpr double kLongestRetry_s = 3600;

/// Before each further try at the run's end, as parts of ckpt.retry_s, or of a minute where that is less:
/// nobody hears an order any more.
constexpr std::array kPausesAtEnd{1.0 / 6, 1.0 / 3, 1.0 / 2};
constexpr double kLongestAtEnd_s = 60;

/// An exception of this rank alone must not keep it from the agreement that all ranks enter next.
template <class T, class Body>
Result<T> attempt(const Body& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return fail(ErrorKind::failed, explain(error));
  }
}

}  // namespace

/// Rank 0's state is what a checkpoint has. Where most ranks agree on another one, it isn't kept: a run that
/// went on from it would have that state on all ranks, and nothing to compare it with. Where any rank has
/// another one, rank 0 writes alone. Two ranks have no majority and nothing to choose by: there the
/// comparison beside training is enough, but where it can't see what a rank's neighbours renew after each
/// step. Errors: failed, the same on all ranks; lost.
Result<int> CheckpointDriver::check_rank_0(int parts) {
  const int ranks = training_.world_size();
  if (training_.now.check_every == 0 || ranks == 1) return parts;
  if (ranks == 2 && (parts == 1 || (!differ_ && !training_.is_sharded()))) return parts;
  whole_.begin(training_.position.step, /*period=*/1);
  const auto mine = static_cast<std::int64_t>(whole_.finish().value_or(0));
  const auto all = from_all_ranks(training_.options.communicator, mine, "state hashes");
  if (!all) return tl::unexpected(all.error());
  differ_ = std::count(all->begin(), all->end(), all->front()) != ranks;
  for (int rank = 1; rank < ranks; ++rank) {
    const std::int64_t other = (*all)[static_cast<std::size_t>(rank)];
    if (other != all->front() && training_.is_sharded())
      return fail(
          ErrorKind::failed,
          fmt::format("rank {}'s parameters differ from those of rank 0, and each rank has its part of "
                      "the optimizer's state: nothing is saved; guard.repair{{ source = 0 }} gives all ranks "
                      "those of rank 0, the last checkpoint is from before",
                      rank));
    if (other != all->front()) parts = 1;
    if (other == all->front() || 2 * std::count(all->begin(), all->end(), other) <= ranks) continue;
    return fail(ErrorKind::failed,
                fmt::format("rank 0's state differs from that of most ranks, and is not saved; "
                            "guard.repair{{ source = {} }} gives all ranks theirs",
                            rank));
  }
  return parts;
}

/// Rank 0 waits for the others' parts then no longer than for a disk, and never for a rank that is lost.
Result<void> CheckpointDriver::settle() {
  if (!parts_) return {};
  training_.timer.enter(Phase::saving);
  training_.options.saver->finish_part();
  if (auto all_written = agree(training_.options.communicator, {}); !all_written) return all_written;
  training_.options.saver->expect_parts();
  parts_ = false;
  return {};
}

tl::unexpected<Error> CheckpointDriver::not_saved(const Error& error, const Source& source,
                                                  const std::string& tag) {
  training_.timer.enter(Phase::boundary);
  if (!training_.is_lost(error, source.interrupted, tag)) return tl::unexpected(error);
  return fail(ErrorKind::lost, source.interrupted == StepGate::Interrupted::save
                                   ? "a rank was lost during the save; the others make it again, but for one "
                                     "without a tag where they go back to a checkpoint"
                                   : "a rank was lost during the save");
}

CheckpointDriver::Source CheckpointDriver::of_now(const std::string& tag) const {
  const std::int64_t step = training_.position.step;
  Source source{step, [this, step, tag] {
                  return Snapshot{step,
                                  tag,
                                  training_.state,
                                  training_.options.settings,
                                  to_json(training_.progress()),
                                  training_.position.best()};
                }};
  if (training_.options.saver != nullptr)
    source.parts = training_.options.saver->parts(training_.state, training_.options.settings);
  return source;
}

CheckpointDriver::~CheckpointDriver() {
  if (training_.options.saver == nullptr) return;
  if (parts_) training_.options.saver->give_up();
  training_.options.saver->finish();
}

Result<SaveResult> CheckpointDriver::save(const std::string& tag) {
  return save(of_now(tag), tag, How::training_waits);
}

Result<SaveResult> CheckpointDriver::save_by_order(const std::string& tag) {
  return save(of_now(tag), tag, How::by_order);
}

Result<SaveResult> CheckpointDriver::save(const Source& source, const std::string& tag, How how) {
  if (training_.options.saver == nullptr)
    return fail(ErrorKind::refused, "this run has nowhere to save checkpoints to");
  UnderWay of{.step = source.step, .tag = tag, .what = source.what, .since = Progress::Clock::now()};
  of.periodic = how == How::beside && tag.empty() && source.what.empty();
  const bool beside = how != How::training_waits && training_.now.ckpt_async;
  training_.timer.enter(Phase::saving);
  if (auto settled = settle(); !settled) return not_saved(settled.error(), source, tag);
  const auto parts = check_rank_0(source.parts);
  if (!parts) return not_saved(parts.error(), source, tag);
  const auto begun = attempt<BegunSave>([&]() -> Result<BegunSave> {
    Snapshot snapshot = source.snapshot();
    snapshot.parts = *parts;
    if (beside) return begin(snapshot, of);
    return training_.options.saver->save(snapshot).map([](const Saved& saved) {
      return BegunSave{saved.path, saved};
    });
  });
  // It can't tell the others; they hear that this rank ends.
  if (!begun && training_.device.failure()) throw std::runtime_error(begun.error().message);
  const auto agreed = agree(training_.options.communicator, outcome_of(begun));
  if (!agreed && (!begun || agreed.error().kind != ErrorKind::lost)) forget(tl::unexpected(agreed.error()));
  if (!agreed) return not_saved(agreed.error(), source, tag);
  training_.timer.enter(Phase::boundary);
  // The other ranks have nothing to write, and don't know whether rank 0 still does.
  if (begun->done && (is_rank_0() || !beside)) {
    const SaveResult result = told(of, *begun->done);
    forget(result);
    return result;
  }
  note_waited(of.since);
  if (how == How::by_order)
    if (auto outcome = defer()) return *outcome;
  SaveResult result;  // nobody's: what comes of it is told later
  result.path = begun->path;
  return result;
}

Result<BegunSave> CheckpointDriver::begin(const Snapshot& snapshot, const UnderWay& under_way) {
  training_.options.saver->finish();
  {
    const MutexLock lock(mutex_);
    auto call = under_way_ ? std::move(under_way_->call) : std::nullopt;  // of a rank 0 that was lost
    under_way_ = under_way;
    under_way_->here = is_rank_0();
    under_way_->call = std::move(call);
    outcome_.reset();
  }
  if (is_rank_0()) training_.options.progress.saves(snapshot.step);
  auto begun =
      training_.options.saver->begin(snapshot, [this](const Result<Saved>& saved) { conclude(saved); });
  parts_ = begun && training_.options.saver->awaits_parts();
  return begun;
}

void CheckpointDriver::note_waited(Progress::Clock::time_point since) {
  const MutexLock lock(mutex_);
  if (under_way_) under_way_->waited_s = in_seconds(Progress::Clock::now() - since);
}

/// Nothing is under way here any more; a call that waited for it gets `outcome`.
void CheckpointDriver::forget(const Result<SaveResult>& outcome) {
  std::optional<DeferredCall> call;
  {
    const MutexLock lock(mutex_);
    if (under_way_) call = std::move(under_way_->call);
    under_way_.reset();
    outcome_ = outcome;
  }
  if (is_rank_0()) training_.options.progress.saves(std::nullopt);
  if (call)
    training_.gate->conclude(*call, outcome.map([](const SaveResult& one) { return CallResult(one); }));
}

/// Nothing: the outcome of the call that runs comes later.
std::optional<Result<SaveResult>> CheckpointDriver::defer() {
  {
    const MutexLock lock(mutex_);
    if (!under_way_) return std::exchange(outcome_, std::nullopt);  // it was quick
    if (training_.gate != nullptr) under_way_->call = training_.gate->defer();
    if (under_way_->call) return std::nullopt;
  }
  training_.options.saver->finish();
  const MutexLock lock(mutex_);
  return std::exchange(outcome_, std::nullopt);
}

void CheckpointDriver::conclude(const Result<Saved>& saved) {
  UnderWay of;
  {
    const MutexLock lock(mutex_);
    of = *under_way_;
  }
  training_.options.progress.saves(std::nullopt);
  if (!saved) {
    warn(of.step, saved.error(), of.periodic ? Retried::yes : Retried::no);
    return forget(tl::unexpected(saved.error()));
  }
  forget(told(of, *saved));
}

SaveResult CheckpointDriver::told(const UnderWay& of, const Saved& saved) {
  const std::chrono::duration<double> seconds = Progress::Clock::now() - of.since;
  const SaveResult result{saved.path, of.step, seconds.count(), static_cast<std::uint64_t>(saved.bytes),
                          of.tag,     "",      of.waited_s};
  bool same = false;
  {
    const MutexLock lock(mutex_);
    failures_ = 0;
    wants_retry_ = false;
    same = saved.bytes == 0 && last_ == saved.path;  // of rank 0, which alone tells it
    if (is_newest(of.step)) last_ = saved.path;
  }
  if (same) return result;
  reporter_.publish(result);
  reporter_.say(fmt::format("step {}: saved {}{} in {:.1f} s{}", of.step, saved.path, of.what,
                            seconds.count(),
                            of.waited_s ? fmt::format("; training waited {:.2f} s", *of.waited_s) : ""));
  return result;
}

bool CheckpointDriver::takes_place(bool due, int writing) {
  const bool idle = writing == 0;
  if (idle) parts_ = false;
  if (parts_ && writing == 1 && is_writing() && is_rank_0()) training_.options.saver->expect_parts();
  if (idle && !is_rank_0()) {
    const MutexLock lock(mutex_);
    under_way_.reset();
  }
  due = due || postponed_;
  if (due && !idle && !postponed_)
    reporter_.say(fmt::format("step {}: the checkpoint waits until the one before is written",
                              training_.position.step));
  postponed_ = due && !idle;
  return due && idle;
}

void CheckpointDriver::save_periodic() {
  if (training_.options.saver == nullptr) return;
  if (const auto saved = save(of_now(""), "", How::beside); !saved)
    warn(training_.position.step, saved.error(),
         saved.error().kind == ErrorKind::lost ? Retried::no : Retried::yes);  // else rejoin() makes it again
}

std::optional<double> CheckpointDriver::take_retry() {
  const MutexLock lock(mutex_);
  const double first = training_.now.ckpt_retry_s;
  if (!std::exchange(wants_retry_, false) || first <= 0) return std::nullopt;
  return std::min(std::ldexp(first, std::max(0, failures_ - 1)), std::max(first, kLongestRetry_s));
}

void CheckpointDriver::finish() {
  if (training_.options.saver == nullptr) return;
  training_.timer.enter(Phase::saving);
  if (const auto settled = settle(); !settled) {
    if (!training_.is_lost(settled.error())) finish_here();
    return;
  }
  training_.options.saver->finish();
}

void CheckpointDriver::finish_here() {
  if (training_.options.saver == nullptr) return;
  training_.timer.enter(Phase::saving);
  if (parts_) training_.options.saver->give_up();  // others may have failed
  training_.options.saver->finish();
}

void CheckpointDriver::give_up() {
  if (training_.options.saver == nullptr) return;
  const bool given_up = training_.options.saver->give_up();
  parts_ = false;
  const MutexLock lock(mutex_);
  if (given_up && under_way_) under_way_->here = false;
}

void CheckpointDriver::stand(bool may_go_back) {
  Saver* saver = training_.options.saver;
  if (saver == nullptr) return;
  if (saver->is_writing()) training_.timer.enter(Phase::saving);  // nobody is killed for that
  give_up();
  if (may_go_back) saver->finish();
}

void CheckpointDriver::moved() {
  if (training_.options.saver == nullptr) return;
  give_up();
  training_.options.saver->moved_to(training_.rank(), training_.world_size());
}

void CheckpointDriver::configure() {
  Saver* saver = training_.options.saver;
  if (saver == nullptr) return;
  if (!training_.now.ckpt_async) {
    const bool wrote = parts_;
    const auto settled = settle();  // giving the memory back waits for what is under way
    if (wrote) training_.timer.enter(Phase::boundary);
    if (!settled && training_.is_lost(settled.error())) return;
    saver->give_room_back();
  }
  if (training_.now.ckpt_async && training_.now.ckpt_every.is_ever())
    saver->make_room(training_.state, training_.options.settings);
}

Result<void> CheckpointDriver::rejoin() {
  if (training_.options.saver == nullptr) return {};
  if (is_rank_0()) training_.options.saver->tidy();
  std::string again;
  if (is_rank_0()) {
    const std::string newest = was_rank_0_ ? "" : training_.options.saver->newest();
    const MutexLock lock(mutex_);
    if (!was_rank_0_) last_ = newest;
    const bool lost = under_way_ && !under_way_->here;
    if (lost || postponed_) again = kAgain + (lost ? under_way_->tag : "");
  }
  was_rank_0_ = is_rank_0();
  const auto told = from_rank(training_.options.communicator, 0, again);
  if (!told) return tl::unexpected(told.error());
  postponed_ = false;
  if (!told->starts_with(kAgain)) return {};
  const std::string tag = told->substr(kAgain.size());
  if (const auto saved = save(of_now(tag), tag, How::beside); !saved)
    warn(training_.position.step, saved.error());
  return {};
}

/// It is of a step that comes again.
void CheckpointDriver::drop_periodic() {
  postponed_ = false;
  bool dropped = false;
  {
    const MutexLock lock(mutex_);
    dropped = under_way_ && !under_way_->here && under_way_->tag.empty();
  }
  if (dropped)
    forget(fail(ErrorKind::lost, "a rank was lost during the save, and training went back to a checkpoint"));
}

std::string CheckpointDriver::last() const {
  if (training_.options.saver != nullptr) training_.options.saver->finish();
  const MutexLock lock(mutex_);
  return last_;
}

/// One of an evaluation beside training may come after a save of a later step.
bool CheckpointDriver::is_newest(std::int64_t step) const {
  const auto name = parse_folder_name(std::filesystem::path(last_).filename().string());
  return !name || name->step <= step;
}

void CheckpointDriver::warn(std::int64_t step, const Error& error, Retried retried) {
  if (training_.rank() != 0) return;
  int failures = 0;
  {
    const MutexLock lock(mutex_);
    failures = ++failures_;
    wants_retry_ = wants_retry_ || retried == Retried::yes;
  }
  const std::string text =
      fmt::format("step {}: no checkpoint: {}{}", step, error.message,
                  failures > 1 ? fmt::format(" ({} saves in a row have failed)", failures) : "");
  reporter_.log(text);
  reporter_.publish(warning_at(WarningKind::checkpoint, step, text));
}

void CheckpointDriver::save_or_warn(const std::string& tag) {
  if (training_.options.saver == nullptr) return;
  if (const auto saved = save(tag); !saved) warn(training_.position.step, saved.error());
}

void CheckpointDriver::save_at_end() {
  if (training_.options.saver == nullptr) return;
  auto saved = save("");
  for (const double part : kPausesAtEnd) {
    const double pause_s = part * std::min(training_.now.ckpt_retry_s, kLongestAtEnd_s);
    if (saved || saved.error().kind == ErrorKind::lost || pause_s <= 0) break;
    warn(training_.position.step, saved.error());
    reporter_.say(
        fmt::format("the run ends with this checkpoint: it is tried again in {:.3g} s (ckpt.retry_s); "
                    "footplate stop --now ends the run without",
                    pause_s));
    training_.timer.enter(Phase::saving);
    std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
    saved = save("");
  }
  if (!saved) warn(training_.position.step, saved.error());
}

void CheckpointDriver::save_best(const EvaluationDriver::BestParameters& best) {
  if (training_.options.saver == nullptr) return;
  const auto snapshot = [&] {
    if (best.beside && best.kept == nullptr)
      throw std::runtime_error(training_.is_sharded()
                                   ? "optim.shard: rank 0 has no copy of what other ranks had of the state "
                                     "that was evaluated; eval.async = false saves it at its own step"
                                   : "there was no memory for a copy of the state that was evaluated");
    TrainingProgress progress = best.kept != nullptr ? best.kept->progress : training_.progress();
    const TrainingPosition& now = training_.position;  // it knows of the evaluation
    progress.position.best_eval_loss = now.best_eval_loss;
    progress.position.best_eval_at = now.best_eval_at;
    progress.position.best_eval_branch = now.best_eval_branch;
    progress.position.evaluated_at = best.step;
    Snapshot made{best.step,
                  "",
                  best.kept != nullptr ? best.kept->state() : training_.state,
                  best.kept != nullptr ? best.kept->settings : training_.options.settings,
                  to_json(progress),
                  now.best(),
                  /*only_best=*/true};
    if (best.kept != nullptr) made.moment = best.kept->moment;
    return made;
  };
  Source source{best.step, snapshot};  // rank 0 alone has a copy of what was evaluated beside
  if (training_.is_sharded()) source.parts = training_.world_size();
  source.what = " (the best evaluation)";
  source.interrupted = StepGate::Interrupted::work;
  if (const auto saved = save(source, "", How::beside); !saved) warn(best.step, saved.error());
}

Result<std::vector<MovedCheckpoint>> CheckpointDriver::on_rank_0(
    const std::function<Result<std::vector<MovedCheckpoint>>()>& body) {
  if (training_.options.saver == nullptr) return fail(ErrorKind::refused, "this run has no checkpoints");
  training_.timer.enter(Phase::saving);
  if (auto settled = settle(); !settled) {
    training_.timer.enter(Phase::boundary);
    training_.is_lost(settled.error());
    return tl::unexpected(settled.error());
  }
  Result<std::vector<MovedCheckpoint>> mine;
  if (training_.rank() == 0) mine = attempt<std::vector<MovedCheckpoint>>(body);
  std::string told;
  if (mine)
    for (const MovedCheckpoint& one : *mine) told += one.before + "\n" + one.now + "\n";
  const auto all = agree(training_.options.communicator, outcome_of(mine)).and_then([&] {
    return from_rank(training_.options.communicator, 0, told);
  });
  training_.timer.enter(Phase::boundary);
  if (!all) {
    training_.is_lost(all.error());
    return tl::unexpected(all.error());
  }
  std::vector<MovedCheckpoint> moved;
  std::istringstream lines(*all);
  const MutexLock lock(mutex_);
  for (MovedCheckpoint one; std::getline(lines, one.before) && std::getline(lines, one.now);) {
    if (one.before == last_) last_ = one.now;
    moved.push_back(one);
  }
  return moved;
}

Result<SaveResult> CheckpointDriver::tag(const std::string& ref, const std::string& tag) {
  const auto moved =
      on_rank_0([&] { return training_.options.saver->tag(ref, training_.position.step, tag); });
  if (!moved) return tl::unexpected(moved.error());
  SaveResult result;
  result.path = moved->front().now;
  result.step = training_.position.step;
  result.tag = tag;
  reporter_.say(fmt::format("step {}: {} has the tag {}", result.step, result.path, tag));
  return result;
}

Result<SaveResult> CheckpointDriver::remove(const std::string& tag) {
  const auto removed = on_rank_0([&] {
    return training_.options.saver->remove(tag).map([](const std::string& path) {
      return std::vector<MovedCheckpoint>{{path, ""}};
    });
  });
  if (!removed) return tl::unexpected(removed.error());
  SaveResult result;
  result.path = removed->front().before;
  result.step = training_.position.step;
  result.tag = tag;
  reporter_.say(fmt::format("step {}: removed {}", result.step, result.path));
  return result;
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
  {
    const MutexLock lock(mutex_);
    last_ = checkpoint;
  }
  training_.options.progress.at_step(training_.position.step);
  reporter_.say(fmt::format("going on from step {} of {}", training_.position.step, checkpoint));
  return {};
}

void CheckpointDriver::tell_other_corpus() {
  const std::string text = std::exchange(other_corpus_, "");
  if (!text.empty()) reporter_.warn(WarningKind::corpus, training_.position.step, text);
}

}  // namespace footplate
