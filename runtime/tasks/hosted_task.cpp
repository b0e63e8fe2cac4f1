#include "runtime/tasks/hosted_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/tasks/declared_schema.h"

namespace footplate {
namespace {

[[noreturn]] void wrong(const std::string& text) {
  throw std::invalid_argument(text);
}

void check_tensor(const char* what, const std::string& name, const at::Tensor& tensor,
                  const ComputeDevice& device, std::set<std::string>& names) {
  if (name.empty()) wrong(fmt::format("the task has a {} without a name", what));
  if (!names.insert(name).second) wrong(fmt::format("the task has the {} '{}' twice", what, name));
  if (!tensor.defined()) wrong(fmt::format("the {} '{}' is no tensor", what, name));
  if (tensor.scalar_type() != at::kFloat)
    wrong(fmt::format("the {} '{}' has the type {}; it has to be float32", what, name,
                      c10::toString(tensor.scalar_type())));
  if (!tensor.is_contiguous()) wrong(fmt::format("the {} '{}' has to be contiguous", what, name));
  if (tensor.device().type() != device.where().type())
    wrong(fmt::format("the {} '{}' is on {}, the run's device is {}: make it on host.device()", what, name,
                      tensor.device().str(), device.where().str()));
}

at::Tensor one_float(at::Tensor loss, const char* function) {
  if (!loss.defined() || loss.numel() != 1)
    wrong(fmt::format(
        "{} gave {}; it has to give one float, the sum over the batch's weight", function,
        loss.defined() ? fmt::format("a tensor of shape [{}]", fmt::join(loss.sizes(), ", ")) : "nothing"));
  return loss;
}

}  // namespace

Result<std::unique_ptr<HostedTask>> HostedTask::make(const v1::Descriptor& descriptor,
                                                     const Settings& settings, int world_size,
                                                     const ComputeDevice& device, const Wrap& wrap, Log log) {
  try {
    auto host = std::make_unique<TaskHost>(settings, world_size, device, std::move(log));
    std::unique_ptr<v1::Task> task(descriptor.make(*host));
    if (task == nullptr) wrong("it made nothing");
    if (wrap) task = wrap(std::move(task));
    const std::uint64_t seed = host->seed();
    auto hosted = std::unique_ptr<HostedTask>(
        new HostedTask(std::move(host), std::move(task), descriptor.declare(), seed, device));
    hosted->check();
    return hosted;
  } catch (const TaskError& error) {
    return fail(error.kind, error.what());
  } catch (const std::exception& error) {
    return fail(ErrorKind::usage,
                fmt::format("the task {} can't be made: {}", descriptor.name, device.explain(error)));
  }
}

HostedTask::HostedTask(std::unique_ptr<TaskHost> host, std::unique_ptr<v1::Task> task,
                       v1::Declaration declaration, std::uint64_t seed, const ComputeDevice& device)
    : host_(std::move(host)),
      task_(std::move(task)),
      declaration_(std::move(declaration)),
      seed_(seed),
      device_(device),
      parameters_(task_->parameters()),
      groups_(task_->groups()),
      state_(task_->state()),
      sums_(declaration_.metrics, task_->statistics()) {
  const auto sets = task_->data();
  if (sets.size() != 1) wrong(fmt::format("the task has {} data sets; it has to have one", sets.size()));
  set_ = sets.front();
}

HostedTask::HostedTask(std::unique_ptr<v1::Task> task, v1::Declaration declaration, std::uint64_t seed,
                       const ComputeDevice& device)
    : HostedTask(nullptr, std::move(task), std::move(declaration), seed, device) {}

void HostedTask::check() const {
  std::set<std::string> names;
  if (parameters_.empty()) wrong("the task has no parameters");
  for (const Parameter& parameter : parameters_) {
    check_tensor("parameter", parameter.name, parameter.tensor, device_, names);
    if (!parameter.tensor.is_leaf() || !parameter.tensor.requires_grad())
      wrong(fmt::format("the parameter '{}' has to be a leaf that requires a gradient", parameter.name));
  }
  for (const v1::State& state : state_) check_tensor("state", state.name, state.tensor, device_, names);
  if (set_.training < 1 && set_.order != v1::Order::counted)
    wrong(fmt::format("the data set '{}' has no training samples", set_.name));
  if (set_.held_out < 0)
    wrong(fmt::format("the data set '{}' has {} held-out samples", set_.name, set_.held_out));
}

std::map<std::string, double> HostedTask::metrics_of(std::span<const double> sums, double weight) const {
  std::map<std::string, double> values;
  for (std::size_t i = 0; i < declaration_.metrics.size(); ++i)
    values[declaration_.metrics[i].name] = declaration_.metrics[i].mean ? sums[i] / weight : sums[i];
  return values;
}

double HostedTask::samples_per_epoch() const {
  return set_.epoch > 0 ? set_.epoch : static_cast<double>(set_.training);
}

std::int64_t HostedTask::index_of(std::int64_t draw) const {
  switch (set_.order) {
    case v1::Order::shuffled:
      return shuffled_index(seed_, draw, set_.training);
    case v1::Order::random:
      return sample_offset(seed_, draw, set_.training);
    case v1::Order::counted:
      break;
  }
  return draw;
}

v1::Batch HostedTask::load(Slice draws) const {
  std::vector<std::int64_t> numbers, indexes;
  for (std::int64_t draw = draws.first; draw < draws.last; ++draw) {
    numbers.push_back(draw);
    indexes.push_back(index_of(draw));
  }
  return checked({.set = 0, .held_out = false, .indexes = indexes, .draws = numbers});
}

v1::Batch HostedTask::load_held_out(std::span<const std::int64_t> samples) const {
  return checked({.set = 0, .held_out = true, .indexes = samples, .draws = samples});
}

v1::Batch HostedTask::checked(const v1::Samples& samples) const {
  v1::Batch batch = task_->load(samples);
  if (batch.tensors.empty()) wrong("load() gave a batch without a tensor");
  if (!(batch.weight > 0))
    wrong(fmt::format("load() gave a batch with the weight {}; it has to be above 0", batch.weight));
  for (at::Tensor& tensor : batch.tensors) {
    if (!tensor.defined()) wrong("load() gave a batch with a tensor that isn't defined");
    tensor = device_.bring(tensor);
  }
  batch.set = samples.set;
  batch.held_out = samples.held_out;
  return batch;
}

Result<void> HostedTask::prepare(const Settings& after) const {
  try {
    const SettingsValues values(after);
    if (std::string why = task_->prepare(values); !why.empty())
      return fail(ErrorKind::refused, "the task refuses: " + std::move(why));
    return {};
  } catch (const std::exception& error) {
    return fail(ErrorKind::refused,
                std::string("the task can't say whether that is possible: ") + error.what());
  }
}

void HostedTask::changed(const Settings& now, std::int64_t step) {
  told_ = now;
  broken_.clear();
  const SettingsValues values(now);
  try {
    task_->changed(values, step);
  } catch (const std::exception& error) {
    broken_ = std::string("changed(): ") + error.what();
  }
}

std::vector<std::string> HostedTask::actions() const {
  std::vector<std::string> names;
  for (const v1::ActionDecl& action : declaration_.actions) names.push_back(declared_name(action.name));
  return names;
}

Result<Json> HostedTask::call(const std::string& action, const Json& arguments, std::int64_t step) {
  const std::string answer = task_->call(action.substr(declared_name("").size()), arguments.dump(), step);
  if (answer.empty()) return Json();
  Json json = Json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    return fail(ErrorKind::failed, action + " is done, and its answer isn't JSON: " + excerpt(answer));
  return json;
}

void HostedTask::mode(bool training) {
  if (training_ != training) task_->training(training);
  training_ = training;
}

at::Tensor HostedTask::loss(const v1::Batch& batch, v1::Sums& sums) {
  if (!broken_.empty()) wrong(broken_);
  mode(true);
  at::Tensor loss = one_float(task_->loss(batch, sums), "loss()");
  if (!loss.requires_grad()) wrong("loss() gave a number that no gradient goes back from");
  return loss;
}

at::Tensor HostedTask::evaluate(const v1::Batch& batch, v1::Sums& sums) {
  mode(false);
  return one_float(task_->evaluate(batch, sums), "evaluate()");
}

}  // namespace footplate
