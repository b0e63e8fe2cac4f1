#include "runtime/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>

#include "run_files/checkpoint_folders.h"
#include "runtime/device/host_kernels/products.h"
#include "runtime/optim/optimizer_settings.h"
#include "runtime/schema/actions.h"
#include "runtime/state/state_check.h"
#include "runtime/train/corpus_check.h"
#include "runtime/train/loop.h"

namespace footplate {
namespace {

/// LibTorch throws; past this boundary nothing does.
template <class T>
Result<T> without_exceptions(int rank, const std::function<Result<T>()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return fail(ErrorKind::failed, fmt::format("rank {}: {}", rank, explain(error)));
  } catch (...) {
    return fail(ErrorKind::failed, fmt::format("rank {}: {}", rank, kThrewNoException));
  }
}

/// muon makes whole matrices orthogonal, of which a rank has pieces.
Result<void> check_sharding(const Settings& settings) {
  if (settings.integer("optim.shard") == 0 ||
      choice_of<OptimizerKind>(settings, "optim.kind") != OptimizerKind::muon)
    return {};
  return fail(ErrorKind::usage,
              fmt::format("optim.shard = {} (from {}): muon needs whole matrices, and can't share its state "
                          "among ranks yet; set optim.shard = 0, or optim.kind to \"adamw\", \"lion\" or "
                          "\"sgd\"",
                          settings.integer("optim.shard"), settings.source("optim.shard")));
}

}  // namespace

Trainer::Trainer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Trainer::~Trainer() = default;

Result<std::unique_ptr<Trainer>> Trainer::create(TrainerOptions options) {
  const Communicator& communicator = options.communicator;
  return without_exceptions<std::unique_ptr<Trainer>>(
      communicator.rank(), [&]() -> Result<std::unique_ptr<Trainer>> {
        const auto blas = choice_of<ProductLibrary>(options.settings, "run.blas");
        if (auto chosen = choose_products(blas); !chosen) return tl::unexpected(chosen.error());
        if (auto possible = check_sharding(options.settings); !possible)
          return tl::unexpected(possible.error());
        auto task = make_task(options, /*asks=*/!options.joins);
        if (!task) return tl::unexpected(task.error());
        auto loop = std::make_unique<Loop>(std::move(options), std::move(*task));
        return std::unique_ptr<Trainer>(new Trainer(std::move(loop)));
      });
}

Result<void> Trainer::check_corpus(const std::string& of_run) const {
  const CorpusIdentity& mine = loop_->training().corpus;
  if (!of_run.empty() && of_run != mine.ranks_hash_text())
    return fail(
        ErrorKind::usage,
        fmt::format("the data (data.corpus, or what the task reads) aren't those of the ranks: they have "
                    "some with hash {}, this process has {} with hash {}; copy theirs to this host",
                    of_run, mine.of_ranks(), mine.ranks_hash_text()));
  return same_corpus(loop_->training().options.communicator, mine);
}

Result<void> Trainer::check_state() const {
  const Training& training = loop_->training();
  return without_exceptions<void>(training.rank(),
                                  [&] { return same_state(training.options.communicator, training.state); });
}

std::string Trainer::corpus_hash() const {
  return loop_->training().corpus.ranks_hash_text();
}

Result<void> Trainer::load(const std::string& checkpoint) {
  return without_exceptions<void>(loop_->training().rank(), [&] { return loop_->load(checkpoint); });
}

Result<Ending> Trainer::run(StepGate& gate) {
  return without_exceptions<Ending>(loop_->training().rank(), [&] { return loop_->run(gate); });
}

Result<SaveResult> Trainer::save(const std::string& tag) {
  return without_exceptions<SaveResult>(loop_->training().rank(), [&] { return loop_->save(tag); });
}

std::int64_t Trainer::step() const {
  return loop_->training().position.step;
}
double Trainer::learning_rate() const {
  const Training& training = loop_->training();
  const std::int64_t step = training.position.step;
  return training.told_learning_rate(step).value_or(footplate::learning_rate(training.now.schedule, step));
}
std::int64_t Trainer::skipped_in_row() const {
  return loop_->skipped_in_row();
}
std::optional<DeviceFailure> Trainer::device_failure() const {
  const ComputeDevice& device = loop_->training().device;
  const auto why = device.failure();
  if (!why) return std::nullopt;
  return DeviceFailure{device.id(), device.description(), *why};
}
bool Trainer::failed_together() const {
  return loop_->failed_together();
}
void Trainer::stand(bool whole) {
  loop_->stand(whole);
}
HeldShare Trainer::held_share() const {
  return loop_->held_share();
}
Result<void> Trainer::finish_saves() {
  return loop_->finish_saves();
}
std::string Trainer::last_checkpoint() const {
  return loop_->last_checkpoint();
}
const StateTable& Trainer::state() const {
  return loop_->training().state;
}

std::vector<std::string_view> Trainer::actions() const {
  std::vector<std::string_view> names{"ckpt.save", "ckpt.tag",     "ckpt.delete",
                                      "eval.now",  "guard.repair", kProfileSteps};
  names.insert(names.end(), loop_->task_actions().begin(), loop_->task_actions().end());
  return names;
}

Result<void> Trainer::prepare(const Order& order, const Settings& after) {
  // Whatever a task says of the settings that it has, its run can be stopped, paused, saved and given smaller
  // micro-batches.
  const bool asks_task = std::ranges::any_of(
      order.changes, [](const Change& change) { return change.name != "train.micro_batch"; });
  if (asks_task)
    if (auto possible = loop_->training().task->prepare(after); !possible) return possible;
  if (auto possible = check_sharding(after); !possible) return possible;
  if (auto possible = loop_->training().check_epochs(after); !possible) return possible;
  const auto changes = [&order](const char* name) {
    return std::ranges::any_of(order.changes, [name](const Change& change) { return change.name == name; });
  };
  if (after.integer("train.epochs") > 0 && changes("train.epochs") && changes("train.steps"))
    return fail(ErrorKind::refused,
                "train.steps and train.epochs both say when the run ends; set one of them");
  for (const Change& change : order.changes)
    if (change.name == "train.cuda_graph" && after.boolean(change.name))
      if (const std::string why = loop_->training().cant_record(Sharding::of(after)); !why.empty())
        return fail(ErrorKind::refused, change.name + " would change nothing: " + why);
  for (const Call& call : order.calls) {
    if (call.action == "eval.now" && choice_of<EvalMode>(after, "eval.mode") == EvalMode::off)
      return fail(ErrorKind::refused, "eval.now: eval.mode is \"off\"; set it to \"all\" or \"one\" first");
    if (call.action == "guard.repair")
      if (const auto source = call.integer("source");
          source >= loop_->training().options.communicator.world_size())
        return fail(ErrorKind::usage,
                    fmt::format("guard.repair: there is no rank {}; ranks are 0 to {}", source,
                                loop_->training().options.communicator.world_size() - 1));
    if (call.action.starts_with("ckpt."))
      if (auto possible = prepare_checkpoint(call, !order.at_step); !possible) return possible;
  }
  return {};
}

/// `now`: what it names has to be there already.
Result<void> Trainer::prepare_checkpoint(const Call& call, bool now) const {
  const auto& names = actions();
  if (std::find(names.begin(), names.end(), call.action) == names.end()) return {};
  const auto& options = loop_->training().options;
  if (options.saver == nullptr)
    return fail(ErrorKind::refused, call.action + ": this run has nowhere to save checkpoints to");
  const std::string tag = call.text("tag");
  if ((!tag.empty() || call.action == "ckpt.tag") && !is_tag(tag))
    return fail(ErrorKind::usage,
                fmt::format("{}: tag \"{}\" can't be part of a folder's name; use up to {} letters, digits, "
                            "'-' and '_'",
                            call.action, tag, kLongestTag));
  if (call.action == "ckpt.save" || !now || options.communicator.rank() != 0) return {};
  const std::string ref = call.action == "ckpt.tag" ? call.text("ref", "latest") : tag;
  if (auto there = options.saver->look_for(ref, options.progress.step()); !there)
    return fail(there.error().kind, call.action + ": " + there.error().message);
  return {};
}

Result<std::optional<double>> Trainer::renew(const Settings& after, Renewal what, std::int64_t /*step*/) {
  if (!what.state) return std::optional<double>();
  return without_exceptions<void>(loop_->training().rank(),
                                  [&] { return loop_->share_as(Sharding::of(after)); })
      .map([] { return std::optional<double>(); });
}

Result<void> Trainer::rejoin(const Rejoin& rejoin) {
  return without_exceptions<void>(loop_->training().rank(), [&] { return loop_->rejoin(rejoin); });
}

Result<void> Trainer::take_up(const Rejoin& rejoin) {
  return without_exceptions<void>(loop_->training().rank(), [&] { return loop_->take_up(rejoin); });
}

std::vector<std::string> Trainer::settle(const Settings& before, Settings& after) {
  return loop_->training().settle_end(before, after);
}

Result<std::optional<std::int64_t>> Trainer::take_end_of_epochs() {
  return loop_->training().take_end_of_epochs();
}

std::vector<Moved> Trainer::settings_changed(const Settings& now, std::int64_t step) {
  return loop_->settings_changed(now, step);
}

Result<CallResult> Trainer::call(const Call& call, std::int64_t step) {
  return without_exceptions<CallResult>(loop_->training().rank(), [&]() -> Result<CallResult> {
    if (call.action == "ckpt.save") return loop_->save_by_order(call.text("tag"));
    if (call.action == "ckpt.tag") return loop_->tag(call.text("ref", "latest"), call.text("tag"));
    if (call.action == "ckpt.delete") return loop_->remove(call.text("tag"));
    if (call.action == kProfileSteps) return loop_->profile(call.integer("steps", 3));
    if (call.action == "guard.repair") return loop_->repair(static_cast<int>(call.integer("source")));
    if (std::ranges::find(loop_->task_actions(), call.action) != loop_->task_actions().end())
      return loop_->call_task(call, step);
    if (call.action != "eval.now")
      return fail(ErrorKind::refused, call.action + " is not the trainer's to do");
    const auto batches = call.arguments.find("batches");
    if (batches == call.arguments.end() || batches->is_null()) return loop_->evaluate_now(std::nullopt);
    return loop_->evaluate_now(batches->get<std::int64_t>());
  });
}

}  // namespace footplate
