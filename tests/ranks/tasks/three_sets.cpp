// A task of three data sets that keeps count of the samples it was trained on: in a state, so that a step
// that comes to nothing doesn't count. Each set's numbers follow another line, which one small network
// learns.
#include <footplate/layers.h>
#include <footplate/task.h>
#include <torch/types.h>

#include <sstream>

using namespace footplate::v1;

namespace {

constexpr std::int64_t kSizes[] = {40, 25, 7};
constexpr std::int64_t kHeldOut[] = {30, 11, 2};
constexpr std::int64_t kMost = 40;

}  // namespace

class ThreeSets final : public Task {
 public:
  static Declaration declare() {
    return {.settings = {{.name = "wrong_order",
                          .initial = "false",
                          .help = "data() gives other sets than were declared.",
                          .applies = "fixed"}},
            .actions = {{.name = "seen", .help = "Tells how often each sample of each set was trained on."}},
            .metrics = {{.name = "error"}, {.name = "number", .mean = false}},
            .sets = {{.name = "big", .share = 2, .help = "Forty numbers."},
                     {.name = "middle"},
                     {.name = "small", .share = 0.25}}};
  }

  explicit ThreeSets(const Host& host) : wrong_order_(host.settings().boolean("task.wrong_order")) {
    torch::manual_seed(host.seed());
    weights_ = torch::randn({3, 2}, torch::requires_grad());
    // The layers are here for a library that has none of footplate's symbols.
    const torch::Tensor x = torch::randn({64});
    if (!torch::allclose(gelu_tanh(x), torch::gelu(x, "tanh"), 1e-4, 1e-6))
      throw std::runtime_error("gelu_tanh isn't GELU");
  }

  std::vector<Parameter> parameters() override { return {{"weights", weights_}}; }
  std::vector<State> state() override { return {{"seen", seen_, State::WrittenBy::update}}; }
  std::vector<Statistic> statistics() override { return {{"seen", {3, kMost}}}; }

  std::vector<DataSet> data() override {
    std::vector<DataSet> sets;
    for (int set = 0; set < 3; ++set)
      sets.push_back({.name = declare().sets[static_cast<std::size_t>(set)].name,
                      .training = kSizes[set],
                      .held_out = kHeldOut[set]});
    if (wrong_order_) std::swap(sets[0], sets[1]);
    return sets;
  }

  Batch load(const Samples& samples) override {
    torch::Tensor seen = torch::zeros({3, kMost});
    std::vector<float> inputs;
    for (const std::int64_t index : samples.indexes) {
      if (!samples.held_out) seen[samples.set][index] += 1;
      inputs.push_back(static_cast<float>(index % 11) / 11);
    }
    const torch::Tensor x = torch::tensor(inputs);
    return {.tensors = {x, x * (1 + samples.set) - samples.set, seen},
            .weight = static_cast<double>(inputs.size())};
  }

  torch::Tensor loss(const Batch& batch, Sums& sums) override {
    sums.add_statistic("seen", batch.tensors[2]);
    return evaluate(batch, sums);
  }
  torch::Tensor evaluate(const Batch& batch, Sums& sums) override {
    const torch::Tensor line = weights_[batch.set];
    const torch::Tensor error = batch.tensors[0] * line[0] + line[1] - batch.tensors[1];
    sums.add("error", error.abs().sum());
    sums.add("number", torch::tensor(batch.weight));
    return error.square().sum();
  }

  void update(const std::vector<torch::Tensor>& statistics, const torch::Tensor& skip) override {
    seen_.copy_(torch::where(skip.gt(0), seen_, seen_ + statistics[0]));
  }

  std::string call(const std::string& /*action*/, const Arguments& /*arguments*/,
                   std::int64_t step) override {
    std::ostringstream answer;
    answer << "{\"step\":" << step;
    for (int set = 0; set < 3; ++set) {
      answer << ",\"" << declare().sets[static_cast<std::size_t>(set)].name << "\":[";
      for (std::int64_t i = 0; i < kSizes[set]; ++i)
        answer << (i == 0 ? "" : ",") << static_cast<std::int64_t>(seen_[set][i].item<float>());
      answer << "]";
    }
    return answer.str() + "}";
  }

 private:
  const bool wrong_order_;
  torch::Tensor weights_;
  torch::Tensor seen_ = torch::zeros({3, kMost});
};

FOOTPLATE_TASK(three_sets, ThreeSets);
