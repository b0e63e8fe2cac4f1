// Tasks whose loss() and evaluate() draw random numbers on the processors.
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using testing::FreeGate;
using testing::MemorySaver;
using testing::MemorySink;
using testing::small_settings;

/// Around another task: a loss that depends on what is drawn.
class Drawing final : public v1::Task {
 public:
  explicit Drawing(std::unique_ptr<v1::Task> inner) : inner_(std::move(inner)) {}
  std::vector<v1::Parameter> parameters() override { return inner_->parameters(); }
  std::vector<v1::Group> groups() override { return inner_->groups(); }
  std::vector<v1::DataSet> data() override { return inner_->data(); }
  v1::Batch load(const v1::Samples& samples) override { return inner_->load(samples); }
  at::Tensor loss(const v1::Batch& batch, v1::Sums& sums) override {
    return inner_->loss(batch, sums).mul(at::rand({}).add(0.5));
  }
  at::Tensor evaluate(const v1::Batch& batch, v1::Sums& sums) override {
    return inner_->evaluate(batch, sums).mul(at::rand({}).add(0.5));
  }
  void training(bool on) override { inner_->training(on); }
  void changed(const v1::Values& now, std::int64_t step) override { inner_->changed(now, step); }

 private:
  const std::unique_ptr<v1::Task> inner_;
};

/// Ends before train.steps, from which the schedule follows.
class ShortGate final : public FreeGate {
 public:
  ShortGate(const Settings& settings, Steerable& steerable, std::int64_t until)
      : FreeGate(settings, steerable), until_(until) {}
  Verdict enter(std::int64_t step) override { return step < until_ ? FreeGate::enter(step) : Verdict::end; }

 private:
  std::int64_t until_;
};

using Checkpoints = std::map<std::string, MemorySaver::Copy>;

struct Trained {
  Checkpoints checkpoints;  ///< one: the end
  std::vector<double> evaluated;
};

/// One rank, up to a step. `before`: drawn by whoever is in this process, too.
Trained trained(std::int64_t until, const std::vector<std::string>& more = {}, std::int64_t before = 0,
                const Checkpoints& from = {}) {
  Trained outcome;
  testing::run_ranks(1, [&](int /*rank*/, Communicator& communicator, Progress& progress) {
    std::vector<std::string> assignments{"train.micro_batch=2"};
    assignments.insert(assignments.end(), more.begin(), more.end());
    const Settings settings = small_settings(assignments);
    MemorySaver saver;
    saver.checkpoints = from;
    MemorySink sink;
    TrainerOptions options{settings, communicator, progress, 1, &saver, &sink, {}};
    options.wrap_task = [](std::unique_ptr<v1::Task> inner) {
      return std::make_unique<Drawing>(std::move(inner));
    };
    auto trainer = Trainer::create(std::move(options));
    ASSERT_TRUE(trainer) << trainer.error().message;
    if (!from.empty()) {
      ASSERT_TRUE((*trainer)->load(from.begin()->first));
    }
    at::rand({before + 1});
    ShortGate gate(settings, **trainer, until);
    ASSERT_TRUE((*trainer)->run(gate));
    saver.checkpoints.clear();
    ASSERT_TRUE((*trainer)->save("end"));
    outcome.checkpoints = saver.checkpoints;
    for (const Json& line : sink.lines)
      if (line.contains("eval/loss")) outcome.evaluated.push_back(line["eval/loss"]);
  });
  return outcome;
}

const std::map<std::string, std::string>& tensors_of(const Trained& outcome) {
  return outcome.checkpoints.begin()->second.tensors;
}

TEST(RandomNumbers, AreTheSameWhateverWasDrawnBefore) {
  EXPECT_EQ(tensors_of(trained(4)), tensors_of(trained(4, {}, 1000)));
  EXPECT_NE(tensors_of(trained(4)), tensors_of(trained(4, {"run.seed=2"})));
}

TEST(RandomNumbers, AreTheSameAfterAResume) {
  const Trained whole = trained(6);
  const Trained half = trained(3);
  EXPECT_EQ(tensors_of(whole), tensors_of(trained(6, {}, 10, half.checkpoints)));
}

/// It draws the same each time, and training as without it.
TEST(RandomNumbers, OfAnEvaluationChangeNothing) {
  const std::vector<std::string> often{"eval.every=1", "eval.batches=2", "eval.async=false",
                                       "optim.lr_scale=0"};
  const Trained still = trained(3, often);
  ASSERT_GE(still.evaluated.size(), 2U);
  EXPECT_EQ(still.evaluated[0], still.evaluated[1]) << "of the same parameters";
  EXPECT_EQ(tensors_of(trained(4, {"eval.every=0"})),
            tensors_of(trained(4, {"eval.every=1", "eval.batches=2", "eval.async=false"})));
}

}  // namespace
}  // namespace footplate
