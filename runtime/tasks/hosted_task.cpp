#include "runtime/tasks/hosted_task.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <stdexcept>
#include <utility>

#include "protocol/schema.h"
#include "runtime/device/kept_generators.h"
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
  if (!tensor.is_contiguous()) wrong(fmt::format("the {} '{}' has to be contiguous", what, name));
  if (tensor.device().type() != device.where().type())
    wrong(fmt::format("the {} '{}' is on {}, the run's device is {}: make it on host.device()", what, name,
                      tensor.device().str(), device.where().str()));
}

void check_float(const char* what, const std::string& name, const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kFloat)
    wrong(fmt::format("the {} '{}' has the type {}; it has to be float32", what, name,
                      c10::toString(tensor.scalar_type())));
}

void check_type(const v1::State& state) {
  if (state.by == v1::State::WrittenBy::forward)
    return check_float("state that loss() writes,", state.name, state.tensor);
  constexpr std::array kTypes{at::kFloat, at::kDouble, at::kLong, at::kByte, at::kBool};
  if (std::ranges::find(kTypes, state.tensor.scalar_type()) == kTypes.end())
    wrong(fmt::format("the state '{}' has the type {}; it has to be float32, float64, int64, uint8 or bool",
                      state.name, c10::toString(state.tensor.scalar_type())));
}

/// An optimizer would move what is shared once for each.
void check_apart(const std::vector<Parameter>& parameters) {
  const auto begin = [](const Parameter* one) {
    return static_cast<const char*>(one->tensor.const_data_ptr());
  };
  std::vector<const Parameter*> by_address;
  for (const Parameter& parameter : parameters)
    if (parameter.tensor.numel() > 0) by_address.push_back(&parameter);
  std::ranges::stable_sort(by_address, std::less<>(), begin);
  for (std::size_t i = 1; i < by_address.size(); ++i) {
    const Parameter *before = by_address[i - 1], *next = by_address[i];
    if (begin(before) + before->tensor.nbytes() > begin(next))
      wrong(fmt::format("the parameters '{}' and '{}' share memory; a tensor has to be listed once",
                        before->name, next->name));
  }
}

void check_groups(const std::vector<v1::Group>& groups, const std::vector<Parameter>& parameters) {
  std::vector<std::string> names;
  for (const v1::Group& group : groups) {
    if (group.name.empty()) wrong("groups() has one without a name");
    if (std::ranges::find(names, group.name) != names.end())
      wrong(fmt::format("groups() has '{}' twice", group.name));
    names.push_back(group.name);
    for (const auto& [what, value] : {std::pair("learning rate factor", group.lr_factor),
                                      std::pair("weight decay", group.weight_decay.value_or(0))})
      if (!std::isfinite(value) || value < 0)
        wrong(fmt::format("the group '{}' has the {} {}; it has to be 0 or more", group.name, what, value));
  }
  for (const Parameter& parameter : parameters) {
    if (parameter.group.empty() || std::ranges::find(names, parameter.group) != names.end()) continue;
    const std::string meant = nearest(parameter.group, names);
    wrong(fmt::format("the parameter '{}' is in the group '{}', and groups() has {}{}", parameter.name,
                      parameter.group, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                      meant.empty() ? "" : "; did you mean " + meant + "?"));
  }
}

at::Tensor one_float(at::Tensor loss, const char* function) {
  if (!loss.defined() || loss.numel() != 1)
    wrong(fmt::format(
        "{} gave {}; it has to give one float, the sum over the batch's weight", function,
        loss.defined() ? fmt::format("a tensor of shape [{}]", fmt::join(loss.sizes(), ", ")) : "nothing"));
  return loss;
}

std::string names_of(const auto& sets) {
  std::vector<std::string> names;
  for (const auto& set : sets) names.push_back(set.name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<std::unique_ptr<HostedTask>> HostedTask::make(const v1::Descriptor& descriptor,
                                                     const Settings& settings, TaskPlace place,
                                                     const ComputeDevice& device, const Wrap& wrap) {
  const bool asks = place.asks_task;
  try {
    auto host = std::make_unique<TaskHost>(settings, std::move(place), device);
    std::unique_ptr<v1::Task> task(descriptor.make(*host));
    if (task == nullptr) wrong("it made nothing");
    if (wrap) task = wrap(std::move(task));
    const std::uint64_t seed = host->seed();
    auto hosted = std::unique_ptr<HostedTask>(
        new HostedTask(std::move(host), std::move(task), descriptor.declare(), seed, device));
    hosted->check();
    if (choice_of<Precision>(settings, "train.param_dtype") == Precision::bf16) hosted->keep_in_bf16();
    hosted->with_replacement_ = settings.boolean("data.replacement");
    if (auto shares = hosted->shares(settings); !shares) wrong(shares.error().message);
    if (asks)
      if (auto possible = hosted->prepare(settings); !possible) wrong(possible.error().message);
    hosted->task_->changed(SettingsValues(settings), 0);
    hosted->flops_per_token_ = hosted->task_->flops_per_weight();
    return hosted;
  } catch (const TaskError& error) {
    return fail(error.kind, error.what());
  } catch (const std::exception& error) {
    return fail(ErrorKind::usage,
                fmt::format("the task {} can't be made: {}", descriptor.name, device.explain(error)));
  } catch (...) {
    return fail(ErrorKind::usage,
                fmt::format("the task {} can't be made: {}", descriptor.name, kThrewNoException));
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
      sets_(task_->data()),
      sums_(declaration_.metrics, task_->statistics(), static_cast<int>(sets_.size()), SumsOf::training),
      held_out_sums_(declaration_.metrics, task_->statistics(), static_cast<int>(sets_.size())) {
  check_sets();
}

HostedTask::HostedTask(std::unique_ptr<v1::Task> task, v1::Declaration declaration, std::uint64_t seed,
                       const ComputeDevice& device)
    : HostedTask(nullptr, std::move(task), std::move(declaration), seed, device) {}

void HostedTask::check() const {
  std::set<std::string> names;
  if (parameters_.empty()) wrong("the task has no parameters");
  for (const Parameter& parameter : parameters_) {
    check_tensor("parameter", parameter.name, parameter.tensor, device_, names);
    check_float("parameter", parameter.name, parameter.tensor);
    if (!parameter.tensor.is_leaf() || !parameter.tensor.requires_grad())
      wrong(fmt::format("the parameter '{}' has to be a leaf that requires a gradient", parameter.name));
  }
  check_apart(parameters_);
  check_groups(groups_, parameters_);
  for (const v1::State& state : state_) {
    check_tensor("state", state.name, state.tensor, device_, names);
    check_type(state);
  }
}

/// The tensors stay those that the task has. Matrices that aren't tables: what autocast would cast for each
/// product, and nothing that it leaves in float32.
void HostedTask::keep_in_bf16() const {
  const at::NoGradGuard no_grad;
  for (const Parameter& parameter : parameters_) {
    const auto group = std::ranges::find(groups_, parameter.group, &v1::Group::name);
    const bool is_table = group != groups_.end() && group->is_table;
    if (parameter.tensor.dim() >= 2 && !is_table)
      parameter.tensor.set_data(parameter.tensor.detach().to(at::kBFloat16));
  }
}

void HostedTask::check_sets() const {
  if (sets_.empty()) wrong("the task has no data set: data() gave none");
  const std::vector<v1::SetDecl>& declared = declaration_.sets;
  const bool as_declared = std::ranges::equal(sets_, declared, {}, &v1::DataSet::name, &v1::SetDecl::name);
  if ((sets_.size() > 1 || !declared.empty()) && !as_declared)
    wrong(
        fmt::format("data() gave the data sets {}; the declaration has {}: the same names in the same order "
                    "belong into both",
                    names_of(sets_), names_of(declared)));
  for (const v1::DataSet& set : sets_) {
    if (set.training < 1 && set.order != v1::Order::counted && sets_.size() == 1)
      wrong(fmt::format("the data set '{}' has no training samples", set.name));
    if (set.held_out < 0)
      wrong(fmt::format("the data set '{}' has {} held-out samples", set.name, set.held_out));
  }
}

Result<std::vector<double>> HostedTask::shares(const Settings& settings) const {
  if (sets_.size() == 1) return std::vector<double>{1};
  std::vector<double> shares;
  for (const v1::DataSet& set : sets_) {
    const double share = settings.number(share_setting(set.name));
    if (share > 0 && set.training < 1 && set.order != v1::Order::counted)
      return fail(ErrorKind::refused,
                  fmt::format("{} is {}, and the data set has no training samples; it has "
                              "to be 0",
                              share_setting(set.name), share));
    shares.push_back(share);
  }
  if (std::ranges::all_of(shares, [](double share) { return share == 0; }))
    return fail(ErrorKind::refused,
                fmt::format("all of data.share are 0, so that no data is left to train on; one of {} has to "
                            "be above 0, as in {} = 1",
                            names_of(sets_), share_setting(sets_.front().name)));
  return shares;
}

std::vector<std::int64_t> HostedTask::held_out() const {
  std::vector<std::int64_t> samples;
  for (const v1::DataSet& set : sets_) samples.push_back(set.held_out);
  return samples;
}

std::int64_t HostedTask::held_out_samples() const {
  std::int64_t samples = 0;
  for (const v1::DataSet& set : sets_) samples += set.held_out;
  return samples;
}

double HostedTask::samples_per_epoch(int set) const {
  const v1::DataSet& data = sets_[static_cast<std::size_t>(set)];
  return data.epoch > 0 ? data.epoch : static_cast<double>(data.training);
}

CorpusIdentity HostedTask::corpus() const {
  const v1::DataSet& first = sets_.front();
  CorpusIdentity all{first.source, first.bytes, first.hash};
  for (std::size_t set = 1; set < sets_.size(); ++set) {
    const v1::DataSet& other = sets_[set];
    if (!other.source.empty() && other.source != all.path) all.path += ", " + other.source;
    all.bytes += other.bytes;
    all.hash = counter_hash(all.hash, other.hash);
  }
  for (const v1::DataSet& set : sets_)
    all.sets += fmt::format("{}{}{}{} samples to train on{}, {} held out", all.sets.empty() ? "" : "; ",
                            set.name, set.name.empty() ? "" : ": ", set.training,
                            set.epoch > 0 ? fmt::format(" (a pass has {})", set.epoch) : "", set.held_out);
  return all;
}

std::int64_t HostedTask::index_of(int set, std::int64_t draw) const {
  const v1::DataSet& data = sets_[static_cast<std::size_t>(set)];
  // Sets of one size have orders of their own.
  const std::uint64_t seed = set == 0 ? seed_ : counter_hash(seed_, static_cast<std::uint64_t>(set));
  switch (data.order) {
    case v1::Order::shuffled:
      if (with_replacement_) return sample_offset(seed, draw, data.training);
      return shuffled_index(seed, draw, data.training);
    case v1::Order::random:
      return sample_offset(seed, draw, data.training);
    case v1::Order::counted:
      break;
  }
  return draw;
}

/// Some draws, one by one.
struct HostedTask::Drawn {
  int set = 0;
  std::vector<std::int64_t> indexes = {}, numbers = {};
  v1::Samples samples() const {
    return {.set = set, .held_out = false, .indexes = indexes, .draws = numbers};
  }
};

HostedTask::Drawn HostedTask::drawn(const Draws& draws) const {
  Drawn all{.set = draws.set};
  for (std::int64_t draw = draws.slice.first; draw < draws.slice.last; ++draw) {
    all.numbers.push_back(draw);
    all.indexes.push_back(index_of(draws.set, draw));
  }
  return all;
}

LoadedSamples HostedTask::load_on_host(const Draws& draws) const {
  return on_host(drawn(draws).samples());
}

v1::Batch HostedTask::on_device(const Draws& draws, LoadedSamples loaded) const {
  return completed(drawn(draws).samples(), std::move(loaded));
}

v1::Batch HostedTask::load_held_out(int set, std::span<const std::int64_t> samples) const {
  const v1::Samples held_out{.set = set, .held_out = true, .indexes = samples, .draws = samples};
  return completed(held_out, on_host(held_out));
}

/// What is computed by its number never comes again.
bool HostedTask::keeps(const v1::Samples& samples) const {
  return cache_ &&
         (samples.held_out || sets_[static_cast<std::size_t>(samples.set)].order != v1::Order::counted);
}

LoadedSamples HostedTask::on_host(const v1::Samples& samples) const {
  LoadedSamples loaded;
  std::vector<at::Tensor> by_draw = task_->by_draw(samples);
  if (!keeps(samples)) {
    loaded.batch = checked(samples);
  } else {
    const std::vector<std::size_t> positions = cache_->missing(samples);
    loaded.batch = missing_of(samples, positions);
    if (cache_place_ == CachePlace::device)
      return {.batch = std::move(loaded.batch), .positions = positions, .by_draw = std::move(by_draw)};
    loaded.batch = cache_->complete(samples, positions, std::move(loaded.batch), pins_);
  }
  for (at::Tensor& tensor : by_draw) loaded.batch.tensors.push_back(std::move(tensor));
  return loaded;
}

v1::Batch HostedTask::completed(const v1::Samples& samples, LoadedSamples loaded) const {
  v1::Batch batch = std::move(loaded.batch);
  for (at::Tensor& tensor : batch.tensors) tensor = bring(tensor);
  if (loaded.positions) batch = cache_->complete(samples, *loaded.positions, std::move(batch), pins_);
  for (const at::Tensor& tensor : loaded.by_draw) batch.tensors.push_back(bring(tensor));
  batch.set = samples.set;
  batch.held_out = samples.held_out;
  return batch;
}

v1::Batch HostedTask::missing_of(const v1::Samples& samples, std::span<const std::size_t> positions) const {
  if (positions.empty()) return {};
  if (positions.size() == samples.indexes.size()) return checked(samples);
  std::vector<std::int64_t> indexes, draws;
  for (const std::size_t position : positions) {
    indexes.push_back(samples.indexes[position]);
    draws.push_back(samples.draws[position]);
  }
  return checked({.set = samples.set, .held_out = samples.held_out, .indexes = indexes, .draws = draws});
}

v1::Batch HostedTask::checked(const v1::Samples& samples) const {
  v1::Batch batch = task_->load(samples);
  if (batch.tensors.empty()) wrong("load() gave a batch without a tensor");
  if (!(batch.weight > 0))
    wrong(fmt::format("load() gave a batch with the weight {}; it has to be above 0", batch.weight));
  for (const at::Tensor& tensor : batch.tensors)
    if (!tensor.defined()) wrong("load() gave a batch with a tensor that isn't defined");
  return batch;
}

/// Begins anew where what load() gives may be another: with settings of the task's own.
void HostedTask::configure_cache(const Settings& now) {
  const auto read_by_it = [](const Settings& settings) {
    std::map<std::string, Value> values = declared_values(settings);
    for (const char* name : {"data.cache", "data.cache_mib"}) values[name] = settings.value(name);
    return values;
  };
  if (told_ && read_by_it(*told_) == read_by_it(now)) return;
  cache_.reset();
  cache_place_ = choice_of<CachePlace>(now, "data.cache");
  if (device_.is_host() && cache_place_ == CachePlace::device) cache_place_ = CachePlace::host;
  if (cache_place_ == CachePlace::none || !declaration_.cacheable) return;
  const ComputeDevice& where = cache_place_ == CachePlace::device ? device_ : host_device();
  cache_ =
      std::make_unique<SampleCache>(sets_, where, now.integer("data.cache_mib") << 20,
                                    host_ ? [host = host_.get()](const std::string& text) { host->log(text); }
                                          : std::function<void(const std::string&)>());
}

Result<void> HostedTask::prepare(const Settings& after) const {
  try {
    if (auto possible = shares(after); !possible) return tl::unexpected(possible.error());
    const SettingsValues values(after);
    if (std::string why = task_->prepare(values); !why.empty())
      return fail(ErrorKind::refused, "the task refuses: " + std::move(why));
    return {};
  } catch (const std::exception& error) {
    return fail(ErrorKind::refused,
                std::string("the task can't say whether that is possible: ") + error.what());
  } catch (...) {
    return fail(ErrorKind::refused,
                std::string("the task can't say whether that is possible: ") + kThrewNoException);
  }
}

void HostedTask::changed(const Settings& now, std::int64_t step) {
  configure_cache(now);
  told_ = now;
  pins_ = now.boolean("data.pin_memory");
  broken_.clear();
  const SettingsValues values(now);
  try {
    task_->changed(values, step);
  } catch (const std::exception& error) {
    broken_ = std::string("changed(): ") + error.what();
  } catch (...) {
    broken_ = std::string("changed(): ") + kThrewNoException;
  }
  try {
    flops_per_token_ = task_->flops_per_weight();
  } catch (...) {
    flops_per_token_ = 0;  // not known now; a step doesn't need it
  }
}

std::optional<double> HostedTask::learning_rate(std::int64_t step) const {
  const auto rate = task_->learning_rate(step);
  if (rate && !std::isfinite(*rate))
    wrong(fmt::format("learning_rate() gave {} for step {}; it has to be finite", *rate, step));
  return rate;
}

bool HostedTask::decides_learning_rate(std::int64_t step) const noexcept {
  try {
    return task_->learning_rate(step).has_value();
  } catch (...) {
    return true;  // the step that needs it fails, and says why
  }
}

std::vector<std::string> HostedTask::actions() const {
  std::vector<std::string> names;
  for (const v1::ActionDecl& action : declaration_.actions) names.push_back(declared_name(action.name));
  return names;
}

Result<Json> HostedTask::call(const std::string& action, const Json& arguments, std::int64_t step) {
  training_.reset();  // an action that samples may leave the module in the other mode
  KeptGenerators generators(device_.where());
  generators.seed(seed_of(step, Drawing::in_an_action));
  const std::string answer =
      task_->call(action.substr(declared_name("").size()), CallArguments(arguments), step);
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

std::uint64_t HostedTask::seed_of(std::int64_t step, Drawing drawing) const {
  return counter_hash(counter_hash(~seed_, static_cast<std::uint64_t>(drawing)),
                      static_cast<std::uint64_t>(step));
}

void HostedTask::update(const at::Tensor& row, const at::Tensor& skip, std::int64_t step) {
  seed_generator(at::kCPU, seed_of(step, Drawing::in_update));  // not a device's: this may be captured
  task_->update(sums_.statistics_of(row), skip);
}

void HostedTask::seed(const Draws& draws) const {
  const std::uint64_t of_set = counter_hash(seed_, static_cast<std::uint64_t>(draws.set));
  const std::uint64_t seed = counter_hash(of_set, static_cast<std::uint64_t>(draws.slice.first));
  seed_generator(at::kCPU, seed);
  if (!device_.is_host()) seed_generator(device_.where(), seed);
}

at::Tensor HostedTask::loss(const v1::Batch& batch, v1::Sums& sums) {
  if (!broken_.empty()) wrong(broken_);
  mode(true);
  at::Tensor loss = one_float(task_->loss(batch, sums), "loss()");
  if (!loss.requires_grad())
    wrong("loss() gave a number that no gradient goes back from: look for detach(), item() and no_grad");
  return loss;
}

at::Tensor HostedTask::evaluate(const v1::Batch& batch, v1::Sums& sums) {
  mode(false);
  return one_float(task_->evaluate(batch, sums), "evaluate()");
}

}  // namespace footplate
