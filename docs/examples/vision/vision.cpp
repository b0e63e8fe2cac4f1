// Small images, recognised by a residual network: BatchNorm, augmentation, a schedule of its own, two groups
// of parameters, a running count of the classes, and two actions. The data is that of digits.cpp: 64 pixels
// from 0 to 16 and the class in each line of a CSV file; each fifth line is held out.
#include <footplate/module.h>
#include <torch/torch.h>

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <sstream>

using namespace footplate::v1;

namespace {

constexpr std::int64_t kClasses = 10, kSide = 8, kWidth = 16;

/// Two convolutions beside a short cut.
struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    const auto convolution = [] {
      return torch::nn::Conv2d(torch::nn::Conv2dOptions(kWidth, kWidth, 3).padding(1).bias(false));
    };
    first = register_module("first", convolution());
    first_norm = register_module("first_norm", torch::nn::BatchNorm2d(kWidth));
    second = register_module("second", convolution());
    second_norm = register_module("second_norm", torch::nn::BatchNorm2d(kWidth));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return (x + second_norm(second(first_norm(first(x)).relu()))).relu();
  }

  torch::nn::Conv2d first{nullptr}, second{nullptr};
  torch::nn::BatchNorm2d first_norm{nullptr}, second_norm{nullptr};
};
TORCH_MODULE(Block);

/// Random bits that follow from two numbers (SplitMix64).
std::uint64_t mixed(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t z = seed + (number + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

}  // namespace

class Vision final : public Task {
 public:
  static Declaration declare() {
    return {.unit = "images",
            .settings = {{.name = "data",
                          .initial = "\"digits.csv\"",
                          .help = "The file with the images.",
                          .applies = "fixed"},
                         {.name = "shift",
                          .initial = "1",
                          .help = "Training images are shifted by up to this much, in both directions.",
                          .unit = "pixels",
                          .min = 0,
                          .max = 3},
                         {.name = "peak_lr",
                          .initial = "0.01",
                          .help = "The learning rate rises to this in the first third of the run, and falls "
                                  "to zero in the rest.",
                          .min = 0,
                          .max = 1}},
            .actions = {{.name = "reset_head",
                         .help = "Draws the last layer again, from the seed and the step.",
                         .params = {{.name = "scale",
                                     .kind = "number",
                                     .initial = "1.0",
                                     .help = "The weights' usual size is multiplied by this."}},
                         .role = "admin"},
                        {.name = "classes", .help = "Tells how often each class was trained on."}},
            .metrics = {{.name = "accuracy"}}};
  }

  explicit Vision(const Host& host) : device_(host.device()), seed_(host.seed()) {
    torch::manual_seed(seed_);
    stem_ = torch::nn::Conv2d(torch::nn::Conv2dOptions(1, kWidth, 3).padding(1));
    net_->push_back("stem", stem_);
    net_->push_back("block", Block());
    net_->push_back("pool", torch::nn::MaxPool2d(2));
    net_->push_back("flat", torch::nn::Flatten());
    head_ = torch::nn::Linear(kWidth * kSide * kSide / 4, kClasses);
    net_->push_back("head", head_);
    net_->to(device_);
    seen_ = torch::zeros({kClasses}, device_);
    read(host.settings().text("task.data"));
  }

  std::vector<Parameter> parameters() override {
    auto list = parameters_of(*net_);
    for (Parameter& one : list)
      if (one.name.starts_with("head.")) one.group = "head";
    return list;
  }
  std::vector<Group> groups() override { return {{.name = "head", .lr_factor = 2, .weight_decay = 0}}; }
  std::vector<State> state() override {
    auto list = state_of(*net_);  // BatchNorm's statistics
    list.push_back({"seen", seen_, State::WrittenBy::update});
    return list;
  }
  std::vector<Statistic> statistics() override { return {{"labels", {kClasses}}}; }

  std::vector<DataSet> data() override {
    return {{.name = "images", .training = rows_.size(0) / 5 * 4, .held_out = rows_.size(0) / 5}};
  }

  Batch load(const Samples& samples) override {
    std::vector<std::int64_t> lines;
    for (const std::int64_t i : samples.indexes)
      lines.push_back(samples.held_out ? i * 5 + 4 : i / 4 * 5 + i % 4);
    const torch::Tensor rows = rows_.index_select(0, torch::tensor(lines));
    torch::Tensor images = rows.narrow(1, 0, kSide * kSide).view({-1, 1, kSide, kSide}) / 16;
    if (!samples.held_out) images = shifted(images, samples.draws);
    return {.tensors = {images, rows.select(1, kSide * kSide).to(torch::kLong)},
            .weight = static_cast<double>(lines.size())};
  }

  torch::Tensor loss(const Batch& batch, Sums& sums) override {
    sums.add_statistic("labels", torch::one_hot(batch.tensors[1], kClasses).sum(0).to(torch::kFloat));
    return evaluate(batch, sums);
  }
  torch::Tensor evaluate(const Batch& batch, Sums& sums) override {
    const torch::Tensor logits = net_->forward(batch.tensors[0]);
    sums.add("accuracy", logits.argmax(1).eq(batch.tensors[1]).sum());
    return torch::cross_entropy_loss(logits, batch.tensors[1], {}, at::Reduction::Sum);
  }
  void training(bool on) override { net_->train(on); }
  void update(const std::vector<torch::Tensor>& statistics, const torch::Tensor& skip) override {
    seen_.copy_(torch::where(skip.gt(0), seen_, seen_ + statistics[0]));
  }

  void changed(const Values& now, std::int64_t /*step*/) override {
    shift_ = now.integer("task.shift");
    peak_ = now.number("task.peak_lr");
    steps_ = static_cast<double>(now.integer("train.steps"));
  }
  std::optional<double> learning_rate(std::int64_t step) const override {
    const double part = static_cast<double>(step + 1) / steps_;
    return peak_ * std::clamp(std::min(3 * part, 1.5 * (1 - part)), 0.0, 1.0);
  }

  std::string call(const std::string& action, const Arguments& arguments, std::int64_t step) override {
    const torch::NoGradGuard no_grad;
    std::ostringstream answer;
    if (action == "reset_head") {
      auto random = at::make_generator<at::CPUGeneratorImpl>(mixed(seed_, static_cast<std::uint64_t>(step)));
      const torch::Tensor weights = torch::randn(head_->weight.sizes(), random);
      head_->weight.copy_(weights * (0.05 * arguments.number("scale")));
      head_->bias.zero_();
      answer << "{\"step\":" << step << "}";
    } else {
      const torch::Tensor counts = seen_.cpu();
      for (std::int64_t i = 0; i < kClasses; ++i)
        answer << (i == 0 ? "[" : ",") << static_cast<std::int64_t>(counts[i].item<float>());
      answer << "]";
    }
    return answer.str();
  }

 private:
  void read(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("task.data = \"" + path + "\": the file can't be opened");
    std::vector<float> numbers;
    std::string line, cell;
    while (std::getline(file, line))
      for (std::stringstream cells(line); std::getline(cells, cell, ',');) numbers.push_back(std::stof(cell));
    rows_ = torch::tensor(numbers).view({-1, kSide * kSide + 1});
  }

  /// Each image by its own draw: the same on any number of ranks.
  torch::Tensor shifted(const torch::Tensor& images, std::span<const std::int64_t> draws) const {
    const std::int64_t most = shift_;
    const torch::Tensor wide = torch::constant_pad_nd(images, {most, most, most, most});
    std::vector<torch::Tensor> parts;
    for (std::size_t i = 0; i < draws.size(); ++i) {
      const std::uint64_t bits = mixed(seed_, static_cast<std::uint64_t>(draws[i]));
      const auto places = static_cast<std::uint64_t>(2 * most + 1);
      parts.push_back(wide[static_cast<std::int64_t>(i)]
                          .narrow(1, static_cast<std::int64_t>(bits % places), kSide)
                          .narrow(2, static_cast<std::int64_t>((bits >> 32U) % places), kSide));
    }
    return torch::stack(parts);
  }

  torch::Device device_;
  std::uint64_t seed_;
  torch::nn::Sequential net_;
  torch::nn::Conv2d stem_{nullptr};
  torch::nn::Linear head_{nullptr};
  torch::Tensor rows_, seen_;
  std::atomic<std::int64_t> shift_{1};  ///< load() may run on any thread
  double peak_ = 0, steps_ = 1;
};

FOOTPLATE_TASK(vision, Vision);
