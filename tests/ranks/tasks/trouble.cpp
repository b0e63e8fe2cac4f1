// A task that goes wrong as its settings say, for test_trouble.py: one parameter, and data that is computed.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <footplate/task.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

using namespace footplate::v1;

// Another version of it: a setting is renamed, and the action is gone.
#ifdef TROUBLE_EDITED
constexpr const char* kNanFrom = "nan_begins";
const std::vector<std::string> kAliases{"nan_from"};
const std::vector<ActionDecl> kActions;
#else
constexpr const char* kNanFrom = "nan_from";
const std::vector<std::string> kAliases{"broken_from"};
const std::vector<ActionDecl> kActions{
    {.name = "nothing",
     .help = "Does nothing.",
     .params = {{.name = "times", .kind = "integer", .initial = "1", .help = "How often."},
                {.name = "where", .kind = "string", .help = "At what place."}}}};
#endif

class Trouble final : public Task {
 public:
  static Declaration declare() {
    return {.settings = {{.name = "where",
                          .initial = "\"nowhere\"",
                          .help = "What goes wrong.",
                          .choices = {"nowhere", "crash", "exit", "hang", "load", "held out", "seed",
                                      "evaluate"}},
                         {.name = kNanFrom,
                          .initial = "1000000000",
                          .help = "The loss is NaN from this sample on.",
                          .min = 0,
                          .usual_min = 4,
                          .aliases = kAliases}},
            .actions = kActions};
  }

  explicit Trouble(const Host& host)
      : where_(host.settings().text("task.where")),
        nan_from_(host.settings().integer(std::string("task.") + kNanFrom)) {
    if (where_ == "crash") std::raise(SIGSEGV);
    if (where_ == "exit") std::exit(0);  // NOLINT(concurrency-mt-unsafe)
    if (where_ == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
    const double first = where_ == "seed" ? static_cast<double>(::getpid()) : 1.0;
    weight_ = at::full({4}, first, at::TensorOptions(host.device())).requires_grad_();
    other_ = at::ones({2}, at::TensorOptions(host.device())).requires_grad_();
  }

  std::vector<Parameter> parameters() override { return {{"other", other_}, {"weight", weight_}}; }
  std::vector<DataSet> data() override {
    return {{.name = "numbers", .training = 1000, .held_out = 10, .order = Order::counted, .epoch = 1000}};
  }

  Batch load(const Samples& samples) override {
    if (where_ == "load" || (where_ == "held out" && samples.held_out))
      throw std::runtime_error("no such sample");
    std::vector<double> rows;
    for (const std::int64_t draw : samples.draws)
      rows.push_back(!samples.held_out && draw >= nan_from_ ? std::numeric_limits<double>::quiet_NaN() : 1.0);
    return {.tensors = {at::tensor(rows, at::kFloat)}, .weight = static_cast<double>(rows.size())};
  }

  std::string call(const std::string& /*action*/, const Arguments& /*arguments*/,
                   std::int64_t /*step*/) override {
    return "\"nothing\"";
  }

  at::Tensor loss(const Batch& batch, Sums& /*sums*/) override {
    return batch.tensors[0].sum() * (weight_.pow(2).sum() + other_.pow(2).sum());
  }

  at::Tensor evaluate(const Batch& batch, Sums& sums) override {
    if (where_ == "evaluate") throw std::runtime_error("no such label");
    return loss(batch, sums);
  }

 private:
  const std::string where_;
  const std::int64_t nan_from_;
  at::Tensor weight_, other_;
};

FOOTPLATE_TASK(trouble, Trouble);
