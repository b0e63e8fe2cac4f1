// optim.shard with ckpt.redundancy: ranks are lost at any point of a step, and those who are left go on with
// the state of one step. A rank that is lost is one of a simulated world; the collective that it is lost in
// may have succeeded on some ranks only.
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>

#include "runtime/comm/message_channel.h"
#include "runtime/schema/schema_table.h"
#include "tests/unit/train/fixtures.h"
#include "tests/unit/train/losing_ranks.h"

namespace footplate {
namespace {

using ::testing::ElementsAre;
using testing::LosingCommunicator;
using testing::Loss;
using testing::MeetingPoint;
using testing::MemorySaver;
using testing::MemorySink;
using testing::RecoveringGate;
using testing::small_settings;
using ::testing::StartsWith;

/// Whole tensors by name.
using WholeState = std::map<std::string, std::string>;

/// Puts the ranks' shards together.
class Assembly {
 public:
  void add(const StateTable& state) {
    const std::scoped_lock lock(mutex_);
    for (const StateEntry& entry : state.entries()) {
      std::size_t bytes = size_of(entry.type);
      for (const std::int64_t extent : entry.shard ? entry.shard->shape : entry.shape)
        bytes *= static_cast<std::size_t>(extent);
      std::string& whole = whole_[entry.name];
      std::vector<std::byte> room;
      const auto content = entry.on_host(room);
      const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
      if (entry.placement == Placement::replicated && !whole.empty()) {
        EXPECT_TRUE(whole == text) << entry.name << ": the ranks have different ones";
      }
      whole.resize(bytes);
      const std::size_t first =
          entry.shard ? static_cast<std::size_t>(entry.shard->first) * size_of(entry.type) : 0;
      if (!content.empty()) std::memcpy(whole.data() + first, content.data(), content.size());
    }
  }
  const WholeState& whole() const { return whole_; }

 private:
  std::mutex mutex_;
  WholeState whole_;
};

/// Loads whole tensors, each rank its shards of them.
class WholeSaver final : public MemorySaver {
 public:
  WholeSaver(const WholeState& state, Json progress) : state_(state), progress_(std::move(progress)) {}
  Result<Json> load(const std::string& /*checkpoint*/, const StateTable& into) override {
    for (const StateEntry& entry : into.entries()) {
      const auto whole = std::as_bytes(std::span(state_.at(entry.name)));
      const std::size_t first =
          entry.shard ? static_cast<std::size_t>(entry.shard->first) * size_of(entry.type) : 0;
      entry.take(whole.subspan(first, entry.bytes));
    }
    return progress_;
  }

 private:
  const WholeState& state_;
  Json progress_;
};

/// Around another task: also keeps a running mean of some elements of each parameter.
class WithMean final : public v1::Task {
 public:
  explicit WithMean(std::unique_ptr<v1::Task> inner)
      : inner_(std::move(inner)),
        mean_(at::zeros({2 * static_cast<std::int64_t>(inner_->parameters().size())})) {}

  std::vector<v1::Parameter> parameters() override { return inner_->parameters(); }
  std::vector<v1::Group> groups() override { return inner_->groups(); }
  std::vector<v1::State> state() override {
    return {{.name = "mean", .tensor = mean_, .by = v1::State::WrittenBy::update}};
  }
  std::vector<v1::DataSet> data() override { return inner_->data(); }
  v1::Batch load(const v1::Samples& samples) override { return inner_->load(samples); }
  at::Tensor loss(const v1::Batch& batch, v1::Sums& sums) override { return inner_->loss(batch, sums); }
  void training(bool on) override { inner_->training(on); }
  void update(const std::vector<at::Tensor>& /*statistics*/, const at::Tensor& skip) override {
    std::vector<at::Tensor> ends;
    for (const v1::Parameter& parameter : inner_->parameters())
      for (const std::int64_t at : {std::int64_t{0}, parameter.tensor.numel() - 1})
        ends.push_back(parameter.tensor.detach().view({-1}).select(0, at));
    mean_.lerp_(at::stack(ends), 0.5 * (1 - skip.item<double>()));
  }
  void changed(const v1::Values& now, std::int64_t step) override { inner_->changed(now, step); }

 private:
  const std::unique_ptr<v1::Task> inner_;
  at::Tensor mean_;
};

/// The processors, with too little memory for what is made next.
class ShortOfMemory final : public ComputeDevice {
 public:
  at::Device where() const override { return host_device().where(); }
  std::string description() const override { return host_device().description(); }
  at::Tensor bring(const at::Tensor& host, bool pinned) const override {
    return host_device().bring(host, pinned);
  }
  at::Tensor host_floats(std::int64_t elements) const override {
    if (std::exchange(is_short, false)) throw std::bad_alloc();
    return host_device().host_floats(elements);
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    host_device().copy_out(to, from, bytes);
  }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    host_device().copy_in(to, from, bytes);
  }
  mutable bool is_short = false;
};

struct EndOfRun {
  WholeState state;
  Json progress;
  std::vector<std::int64_t> recovered_at;
  std::set<int> shares_of;  ///< how many shares the ranks that are left have
  std::set<Json> best_of;   ///< what they know of the best evaluation
  std::set<std::string> refusals;
};

/// What a run begins with.
struct Begin {
  const WholeState& state;
  Json progress;
  std::optional<std::int64_t> go_back_to = {};  ///< the step of that, where ranks go back to it
};

EndOfRun trained(int ranks, std::int64_t until, const std::vector<std::string>& assignments,
                 const std::vector<Loss>& losses = {}, const std::optional<Begin>& begin = {},
                 const std::map<std::int64_t, std::vector<std::string>>& changes = {},
                 std::optional<std::int64_t> last_rank_is_short_at = {}) {
  const Settings settings = small_settings(assignments);
  SimWorld world(ranks);
  MeetingPoint point(begin ? begin->go_back_to : std::nullopt);
  Assembly assembly;
  EndOfRun outcome;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Ledger ledger;
      Progress progress;
      const auto communicator = world.communicator(rank, ledger, progress);
      const auto channel = world.channel(rank);
      const auto member = world.world(rank, *channel);
      LosingCommunicator losing(*communicator, world, rank, losses);
      MemorySink sink;
      const WholeState nothing;
      WholeSaver saver(begin ? begin->state : nothing, begin ? begin->progress : Json());
      TrainerOptions options{settings, losing, progress, ranks, &saver, &sink, [](const std::string&) {}};
      options.before_step = [&losing](std::int64_t step) {
        losing.begin_step(step);
        return Result<void>();
      };
      ShortOfMemory device;
      options.device = &device;
      options.wrap_task = [](std::unique_ptr<v1::Task> inner) {
        return std::make_unique<WithMean>(std::move(inner));
      };
      auto trainer = Trainer::create(std::move(options));
      ASSERT_TRUE(trainer) << trainer.error().message;
      if (begin) {
        ASSERT_TRUE((*trainer)->load("whole"));
      }
      const bool dies =
          std::any_of(losses.begin(), losses.end(), [&](const Loss& one) { return one.rank == rank; });
      RecoveringGate gate(
          settings, **trainer, point, *member, [&] { return world.is_dead(rank); }, until);
      gate.changes = changes;
      gate.before_change = [&](std::int64_t step) {
        device.is_short = step == last_rank_is_short_at && rank + 1 == ranks;
      };
      const auto ending = (*trainer)->run(gate);
      EXPECT_EQ(ending.has_value(), !dies) << rank;
      if (dies) return;
      assembly.add((*trainer)->state());
      ASSERT_TRUE((*trainer)->save("end"));
      const std::scoped_lock lock(mutex);
      outcome.progress = saver.checkpoints.begin()->second.progress;
      outcome.best_of.insert({outcome.progress.at("best_eval_at"), outcome.progress.at("evaluated_at")});
      outcome.recovered_at = gate.recovered_at;
      outcome.refusals.insert(gate.refused.begin(), gate.refused.end());
      outcome.shares_of.insert((*trainer)->held_share().of);
    });
  for (std::thread& thread : threads) thread.join();
  outcome.state = assembly.whole();
  return outcome;
}

std::vector<std::string> redundant(std::vector<std::string> more = {}, int stage = 1) {
  more.insert(more.end(), {"optim.shard=" + std::to_string(stage), "ckpt.redundancy=memory"});
  return more;
}

/// Each step has several passes, and gradients and parameters travel in several buckets.
std::vector<std::string> in_buckets() {
  return {"model.layers=1", "model.width=384", "model.context=4", "train.micro_batch=2"};
}

void expect_alike(const WholeState& one, const WholeState& other) {
  ASSERT_EQ(one.size(), other.size());
  for (const auto& [name, bytes] : one) EXPECT_TRUE(bytes == other.at(name)) << name;
}

constexpr std::int64_t kSteps = 8;

/// As a run that goes on from the state of the step at which they did, on as many ranks.
void expect_as_resumed(int ranks, const std::vector<Loss>& losses, const std::vector<std::string>& more = {},
                       int stage = 1) {
  const EndOfRun recovered = trained(ranks, kSteps, redundant(more, stage), losses);
  ASSERT_EQ(recovered.recovered_at.size(), losses.size());
  int left = ranks;
  EndOfRun undisturbed;
  std::int64_t before = 0;
  for (std::size_t i = 0; i <= losses.size(); ++i) {
    const std::int64_t until = i < losses.size() ? recovered.recovered_at[i] : kSteps;
    if (until > before) {
      const EndOfRun from = std::move(undisturbed);
      undisturbed = trained(left, until, redundant(more, stage), {},
                            before > 0 ? std::optional(Begin{from.state, from.progress}) : std::nullopt);
    }
    before = until;
    --left;
  }
  expect_alike(recovered.state, undisturbed.state);
  EXPECT_EQ(recovered.shares_of, std::set<int>{ranks - static_cast<int>(losses.size())});
}

/// The same ones on all ranks (Assembly), also where it has no statistics.
TEST(ShareState, TheTasksOwnUpdateSeesWholeParameters) {
  for (const char* stage : {"optim.shard=0", "optim.shard=1", "optim.shard=2"}) {
    const std::string mean = trained(2, kSteps, {stage}).state.at("state/mean");
    EXPECT_NE(mean, std::string(mean.size(), '\0')) << stage;
  }
}

TEST(ShareState, CopiesChangeNothing) {
  for (const int ranks : {1, 2, 3, 4})
    for (const char* stage : {"optim.shard=1", "optim.shard=2"})
      expect_alike(trained(ranks, kSteps, {"ckpt.redundancy=memory", stage}).state,
                   trained(ranks, kSteps, {stage}).state);
}

TEST(ShareState, ARankIsLostBeforeAnyOperationOfAStep) {
  for (const char* operation : {"gradients", "pass", "step sums", "parameters"})
    for (const int lost : {0, 2}) {
      SCOPED_TRACE(std::string(operation) + ", rank " + std::to_string(lost));
      for (const int stage : {1, 2}) expect_as_resumed(3, {{lost, 4, operation, {}}}, {}, stage);
    }
}

TEST(ShareState, ARankIsLostBeforeALaterBucketOfSharedGradients) {
  for (const char* operation : {"gradients", "pass", "parameters"})
    for (const int before : {1, 3}) {
      if (operation == std::string("parameters") && before == 3) continue;  // it has as many
      SCOPED_TRACE(std::string(operation) + ", " + std::to_string(before));
      expect_as_resumed(3, {{1, 4, operation, {}, before}}, in_buckets(), /*stage=*/2);
    }
}

/// Who has the sums of all ranks makes the step, and whoever hasn't makes it, too.
TEST(ShareState, TheSumsOfAStepReachSomeRanksOnly) {
  for (const std::set<int>& on : {std::set<int>{0}, {2}, {3}, {0, 3}, {2, 3}}) {
    SCOPED_TRACE(::testing::PrintToString(on));
    for (const int stage : {1, 2}) expect_as_resumed(4, {{1, 4, "step sums", on}}, {}, stage);
  }
}

TEST(ShareState, TheParametersReachSomeRanksOnly) {
  for (const std::set<int>& on : {std::set<int>{}, {0}, {2, 3}}) {
    SCOPED_TRACE(::testing::PrintToString(on));
    for (const int stage : {1, 2}) expect_as_resumed(4, {{1, 4, "parameters", on}}, {}, stage);
  }
}

TEST(ShareState, OneRankAfterTheOther) {
  expect_as_resumed(4, {{3, 2, "parameters", std::set<int>{1}},
                        {0, 4, "step sums", std::set<int>{2}},
                        {2, 6, "gradients", {}}});
}

/// Without copies: as a run that goes on from the checkpoint without that rank, or those ranks.
TEST(ShareState, WhatIsLostComesFromACheckpoint) {
  for (const int stage : {1, 2}) {
    const std::vector<std::string> alone{"optim.shard=" + std::to_string(stage)};
    const EndOfRun kept = trained(4, 3, alone);
    const auto expect_to_go_back = [&](const std::vector<Loss>& losses) {
      const EndOfRun live = trained(4, kSteps, alone, losses, Begin{kept.state, kept.progress, 3});
      const int left = 4 - static_cast<int>(losses.size());
      expect_alike(live.state, trained(left, kSteps, alone, {}, Begin{kept.state, kept.progress}).state);
      EXPECT_EQ(live.recovered_at.back(), 3);
      EXPECT_EQ(live.shares_of, std::set<int>{left});
    };
    for (const char* operation : {"gradients", "step sums", "parameters"})
      for (const int lost : {0, 2}) {
        SCOPED_TRACE(std::string(operation) + ", rank " + std::to_string(lost));
        expect_to_go_back({{lost, 5, operation, {}}});
      }
    expect_to_go_back({{1, 5, "step sums", std::set<int>{2}}});
    expect_to_go_back({{1, 5, "gradients", {}}, {3, 5, "shares", {}}});
    expect_to_go_back({{1, 5, "gradients", {}}, {0, 7, "parameters", {}}});
  }
}

/// A collective hung, and the ranks have found together again: without copies, too, each has its share.
TEST(ShareState, NobodyIsLost) {
  constexpr int kNobody = -1;
  for (const int stage : {1, 2})
    for (const auto& [operation, on] : {std::pair<const char*, std::set<int>>{"step sums", {2}},
                                        {"step sums", {}},
                                        {"parameters", {0}},
                                        {"gradients", {}}}) {
      SCOPED_TRACE(std::string(operation) + ::testing::PrintToString(on));
      const std::vector<std::string> alone{"optim.shard=" + std::to_string(stage)};
      expect_alike(trained(3, kSteps, alone, {{kNobody, 5, operation, on}}).state,
                   trained(3, kSteps, alone).state);
    }
}

/// It ends well on some ranks only. What they take for the best decides which of them save a later one.
TEST(ShareState, ARankIsLostInTheReductionOfAnEvaluation) {
  for (const std::set<int>& on : {std::set<int>{0}, {2}, {0, 2}, {}})
    for (const char* shard : {"optim.shard=0", "optim.shard=1"}) {
      SCOPED_TRACE(std::string(shard) + ::testing::PrintToString(on));
      const EndOfRun live =
          trained(3, kSteps, {shard, "ckpt.redundancy=memory", "eval.every=5"}, {{1, 4, "eval sums", on}});
      EXPECT_EQ(live.recovered_at, std::vector<std::int64_t>{5});
      EXPECT_EQ(live.best_of.size(), 1U) << ::testing::PrintToString(live.best_of);
    }
}

/// Those who are left still have what they had, whatever came of the first try.
TEST(ShareState, AnotherRankIsLostWhileTheStateIsDivided) {
  for (const Loss& first : {Loss{1, 4, "gradients", {}}, Loss{1, 4, "step sums", std::set<int>{0, 2}},
                            Loss{1, 4, "parameters", std::set<int>{2}}})
    for (const char* operation : {"shares", "catching up", "moving state"}) {
      if (operation == std::string("catching up") && first.operation != "step sums") continue;
      SCOPED_TRACE(first.operation + ", then " + operation);
      const EndOfRun live = trained(4, kSteps, redundant(), {first, {3, 4, operation, {}}});
      const std::int64_t step = first.operation == "gradients" ? 4 : 5;
      EXPECT_EQ(live.recovered_at, std::vector<std::int64_t>{step});
      const EndOfRun before = trained(4, step, redundant());
      expect_alike(live.state,
                   trained(2, kSteps, redundant(), {}, Begin{before.state, before.progress}).state);
    }
}

/// Some have shares of four ranks then, and one those of five.
TEST(ShareState, AnotherRankIsLostAsTheStateIsDividedOnSomeRanks) {
  for (const std::set<int>& on : {std::set<int>{0, 2}, {0, 1, 2}}) {
    SCOPED_TRACE(::testing::PrintToString(on));
    const EndOfRun live =
        trained(5, kSteps, redundant(), {{4, 4, "gradients", {}}, {3, 4, "moving state", on}});
    const EndOfRun before = trained(5, 4, redundant());
    expect_alike(live.state, trained(3, kSteps, redundant(), {}, Begin{before.state, before.progress}).state);
  }
}

TEST(ShareState, WithEachKindOfOptimizer) {
  for (const char* kind : {"optim.kind=lion", "optim.kind=sgd"})
    expect_as_resumed(3, {{1, 4, "step sums", std::set<int>{2}}}, {kind});
}

/// Matrices with master weights, which are shared, and tables without; both of a rank that is lost.
TEST(ShareState, OfParametersInBf16) {
  const std::vector<std::string> in_bf16{"train.precision=bf16", "train.param_dtype=bf16"};
  for (const char* operation : {"gradients", "parameters"})
    for (const int stage : {1, 2}) {
      SCOPED_TRACE(std::string(operation) + ", " + std::to_string(stage));
      expect_as_resumed(3, {{1, 4, operation, {}}}, in_bf16, stage);
    }
  const WholeState whole = trained(2, kSteps, in_bf16).state;
  const auto bytes = [&](const std::string& name) { return whole.at(name).size(); };
  EXPECT_EQ(bytes("optim/master/blocks.0.up.weight"), 2 * bytes("model/blocks.0.up.weight"));
  EXPECT_EQ(bytes("optim/exp_avg/embedding.weight"), bytes("model/embedding.weight"));
  EXPECT_FALSE(whole.contains("optim/master/embedding.weight"));
}

/// Autocast rounds the parameters for each product; here they are rounded once, and the masters are what they
/// would be: the same bits.
TEST(ShareState, ParametersInBf16AreThoseThatAutocastComputesWith) {
  const std::vector<std::string> in_bf16{"train.precision=bf16", "train.param_dtype=bf16"};
  const auto as_floats = [](WholeState state) {
    for (auto& [name, bytes] : state)
      if (const auto master = state.find("optim/master/" + name.substr(name.find('/') + 1));
          name.starts_with("model/") && master != state.end())
        bytes = master->second;
    std::erase_if(state, [](const auto& one) { return one.first.starts_with("optim/master/"); });
    return state;
  };
  const EndOfRun first = trained(1, 1, in_bf16);
  const WholeState begin = as_floats(first.state);
  const EndOfRun autocast = trained(1, kSteps, {"train.precision=bf16"}, {}, Begin{begin, first.progress});
  WholeState kept = as_floats(trained(1, kSteps, in_bf16).state), cast = autocast.state;
  kept.erase("state/mean");  // of what the parameters are
  cast.erase("state/mean");
  expect_alike(kept, cast);
}

/// Live, by orders: as runs that were stopped there and resumed with the other settings.
TEST(ShareState, SettingsChangeWhoKeepsWhat) {
  const std::map<std::int64_t, std::vector<std::string>> changes{{2, {"optim.shard=1"}},
                                                                 {4, {"ckpt.redundancy=memory"}},
                                                                 {5, {"ckpt.redundancy=none"}},
                                                                 {6, {"optim.shard=2"}},
                                                                 {7, {"optim.shard=0"}}};
  for (const auto& [ranks, begun_with] : {std::pair<int, std::vector<std::string>>{1, {}},
                                          {3, {}},
                                          {3, {"train.precision=bf16", "train.param_dtype=bf16"}}}) {
    const EndOfRun live = trained(ranks, kSteps, begun_with, {}, {}, changes);
    EndOfRun parts = trained(ranks, 2, begun_with);
    std::vector<std::string> settings = begun_with;
    for (auto change = changes.begin(); change != changes.end(); ++change) {
      settings.push_back(change->second.front());
      const EndOfRun from = std::move(parts);
      const auto next = std::next(change);
      parts = trained(ranks, next != changes.end() ? next->first : kSteps, settings, {},
                      Begin{from.state, from.progress});
    }
    expect_alike(live.state, parts.state);
  }
}

/// Nothing has changed then, whatever the others could have done.
TEST(ShareState, WithoutMemoryForItAChangeIsRefused) {
  for (const auto& [from, to] : {std::pair<std::vector<std::string>, std::string>{{}, "optim.shard=1"},
                                 {{}, "optim.shard=2"},
                                 {redundant(), "optim.shard=0"},
                                 {redundant({"optim.kind=lion"}), "optim.shard=2"}}) {
    SCOPED_TRACE(to);
    const EndOfRun live = trained(3, kSteps, from, {}, {}, {{4, {to}}}, 4);
    EXPECT_THAT(live.refusals, ElementsAre(StartsWith("rank 2: ")));
    expect_alike(live.state, trained(3, kSteps, from).state);
  }
}

/// Whoever has begun to divide the state takes it back, and all do it once they have found together.
TEST(ShareState, ARankIsLostWhileSettingsChangeWhoKeepsWhat) {
  for (const char* operation : {"shares", "moving state"})
    for (const auto& [from, to] : {std::pair<std::vector<std::string>, std::string>{{}, "optim.shard=1"},
                                   {redundant(), "optim.shard=0"},
                                   {redundant(), "optim.shard=2"},
                                   {redundant(), "ckpt.redundancy=none"}}) {
      SCOPED_TRACE(std::string(operation) + ", " + to);
      // The step of the operation is that of the last before_step().
      const EndOfRun live = trained(3, kSteps, from, {{1, 3, operation, {}}}, {}, {{4, {to}}});
      EXPECT_EQ(live.recovered_at, std::vector<std::int64_t>{4});
      const EndOfRun before = trained(3, 4, from);
      std::vector<std::string> settings = from;
      settings.push_back(to);
      expect_alike(live.state, trained(2, kSteps, settings, {}, Begin{before.state, before.progress}).state);
    }
}

}  // namespace
}  // namespace footplate
