// A task that keeps a processor busy for so long for each step, and so long for each batch that it loads:
// what scripts/bench loader measures.
#include <footplate/task.h>
#include <torch/types.h>

#include <ctime>

using namespace footplate::v1;

namespace {

double seconds_of_thread() {
  std::timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void work_for(double ms) {
  for (const double end = seconds_of_thread() + ms / 1e3; seconds_of_thread() < end;) {
  }
}

}  // namespace

class BusyLoad final : public Task {
 public:
  static Declaration declare() {
    return {.settings = {
                {.name = "step_ms", .initial = "20.0", .help = "A step takes this long.", .unit = "ms"},
                {.name = "load_ms", .initial = "10.0", .help = "A batch takes this long.", .unit = "ms"}}};
  }
  explicit BusyLoad(const Host& /*host*/) {}

  std::vector<Parameter> parameters() override { return {{"value", value_}}; }
  std::vector<DataSet> data() override { return {{.name = "numbers", .training = 4096}}; }
  Batch load(const Samples& samples) override {
    work_for(load_ms_);
    return {.tensors = {torch::ones({1}) * static_cast<double>(samples.indexes.front())}, .weight = 1};
  }
  torch::Tensor loss(const Batch& batch, Sums& /*sums*/) override {
    work_for(step_ms_);
    return (value_ - batch.tensors[0]).square().sum();
  }
  void changed(const Values& now, std::int64_t /*step*/) override {
    step_ms_ = now.number("task.step_ms");
    load_ms_ = now.number("task.load_ms");
  }

 private:
  const torch::Tensor value_ = torch::zeros({1}, torch::requires_grad());
  double step_ms_ = 0, load_ms_ = 0;
};

FOOTPLATE_TASK(busy_load, BusyLoad);
