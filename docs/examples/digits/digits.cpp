// Handwritten digits of 8 x 8 pixels, recognised by a small convolutional network. The data is a CSV file: 64
// pixels from 0 to 16 and the digit in each line (scikit-learn's digits.csv); each fifth line is held out.
#include <footplate/module.h>
#include <torch/torch.h>

#include <fstream>
#include <sstream>

using namespace footplate::v1;

class Digits final : public Task {
 public:
  static Declaration declare() {
    return {.unit = "images",
            .settings = {{.name = "data",
                          .initial = "\"digits.csv\"",
                          .help = "The file with the images.",
                          .applies = "fixed"},
                         {.name = "smoothing",
                          .initial = "0.0",
                          .help = "Labels are smoothed by this much.",
                          .min = 0,
                          .max = 0.9,
                          .usual_max = 0.3}},
            .metrics = {{.name = "accuracy"}}};
  }

  explicit Digits(const Host& host) : device_(host.device()) {
    torch::manual_seed(host.seed());
    net_ = torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 32, 3).padding(1)),
                                 torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Flatten(),
                                 torch::nn::Linear(512, 64), torch::nn::ReLU(), torch::nn::Linear(64, 10));
    net_->to(device_);
    const std::string path = host.settings().text("task.data");
    std::ifstream file(path);
    if (!file) throw std::runtime_error("task.data = \"" + path + "\": the file can't be opened");
    std::vector<float> numbers;
    std::string line, cell;
    while (std::getline(file, line))
      for (std::stringstream cells(line); std::getline(cells, cell, ',');) numbers.push_back(std::stof(cell));
    rows_ = torch::tensor(numbers).view({-1, 65});
  }

  std::vector<Parameter> parameters() override { return parameters_of(*net_); }
  std::vector<DataSet> data() override {
    return {{.name = "digits", .training = rows_.size(0) / 5 * 4, .held_out = rows_.size(0) / 5}};
  }

  Batch load(const Samples& samples) override {
    std::vector<std::int64_t> lines;
    for (const std::int64_t i : samples.indexes)
      lines.push_back(samples.held_out ? i * 5 + 4 : i / 4 * 5 + i % 4);
    const torch::Tensor rows = rows_.index_select(0, torch::tensor(lines));
    return {.tensors = {rows.narrow(1, 0, 64).view({-1, 1, 8, 8}) / 16, rows.select(1, 64).to(torch::kLong)},
            .weight = static_cast<double>(lines.size())};
  }

  torch::Tensor loss(const Batch& batch, Sums& sums) override {
    const torch::Tensor logits = net_->forward(batch.tensors[0]);
    sums.add("accuracy", logits.argmax(1).eq(batch.tensors[1]).sum());
    return torch::nn::functional::cross_entropy(logits, batch.tensors[1],
                                                torch::nn::functional::CrossEntropyFuncOptions()
                                                    .reduction(torch::kSum)
                                                    .label_smoothing(batch.held_out ? 0 : smoothing_));
  }

  void changed(const Values& now, std::int64_t /*step*/) override {
    smoothing_ = now.number("task.smoothing");
  }

 private:
  torch::Device device_;
  torch::nn::Sequential net_;
  torch::Tensor rows_;
  double smoothing_ = 0;
};

FOOTPLATE_TASK(digits, Digits);
