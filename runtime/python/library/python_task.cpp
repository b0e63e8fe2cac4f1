#include "runtime/python/library/python_task.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <chrono>
#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "protocol/mutex.h"
#include "runtime/python/library/interpreter.h"
#include "runtime/python/library/open_values.h"
#include "runtime/python/library/tensor_bridge.h"

namespace footplate {
namespace {

namespace py = pybind11;

/// So long the control thread waits for prepare(): other ranks hear nothing of it meanwhile.
constexpr std::chrono::milliseconds kPatience{500};

py::list list_of(const std::vector<at::Tensor>& tensors) {
  py::list list;
  for (const at::Tensor& tensor : tensors) list.append(to_python(tensor));
  return list;
}

at::Tensor numbers(std::span<const std::int64_t> values) {
  return at::tensor(at::ArrayRef<std::int64_t>(values.data(), values.size()));
}

template <class T>
using Words = std::initializer_list<std::pair<const char*, T>>;

/// Which of the words it is; `what` says it, for people.
template <class T>
T meant(const std::string& what, const std::string& word, const Words<T>& words) {
  std::string allowed;
  for (const auto& [known, value] : words) {
    if (word == known) return value;
    allowed += (allowed.empty() ? "" : ", ") + std::string(known);
  }
  throw std::invalid_argument(fmt::format("{} '{}'; it has to be one of {}", what, word, allowed));
}

v1::State::WrittenBy written_by(const std::string& name, const std::string& by) {
  using By = v1::State::WrittenBy;
  return meant<By>("the state '" + name + "' is written by", by,
                   {{"nobody", By::nobody}, {"forward", By::forward}, {"update", By::update}});
}

v1::Order order_of(const std::string& set, const std::string& order) {
  using v1::Order;
  return meant<Order>(
      "the data set '" + set + "' has the order", order,
      {{"shuffled", Order::shuffled}, {"random", Order::random}, {"counted", Order::counted}});
}

/// Of what a batch's random numbers follow from (SplitMix64).
std::int64_t mixed(std::uint64_t seed, std::int64_t draw) {
  std::uint64_t z = seed + 0x9e3779b97f4a7c15U * (static_cast<std::uint64_t>(draw) + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return static_cast<std::int64_t>((z ^ (z >> 31)) >> 1);
}

void seed_generator(std::int64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(static_cast<std::uint64_t>(seed));
}

}  // namespace

/// Where print() and tracebacks go, as long as the task lives: Python keeps its function for longer.
struct PythonTask::Log {
  explicit Log(const v1::Host& the_host) : host(&the_host) {}
  void write(const std::string& text) {
    const MutexLock lock(mutex);
    if (host != nullptr) host->log(text);
  }
  int rank() {
    const MutexLock lock(mutex);
    return host != nullptr ? host->rank() : 0;
  }
  void close() {
    const MutexLock lock(mutex);
    host = nullptr;
  }
  Mutex mutex;
  const v1::Host* host GUARDED_BY(mutex);
};

template <class Body>
auto PythonTask::call_python(Body body) const {
  try {
    return in_python(file_, std::move(body));
  } catch (const PythonError& error) {
    if (!error.details.empty()) log_->write(error.details);
    throw;
  }
}

PythonTask::PythonTask(py::handle task_class, std::string file, const v1::Host& host)
    : file_(std::move(file)), device_(host.device()), seed_(host.seed()), log_(std::make_shared<Log>(host)) {
  const OpenValues values(host.settings());
  call_python([&] {
    const auto write = py::cpp_function([log = log_](const std::string& text) { log->write(text); });
    const auto rank = py::cpp_function([log = log_] { return log->rank(); });
    hosted_ = hosting("Hosted")(task_class, reader(values.shared()), device_.str(), seed_, host.world_size(),
                                rank, host.folder(), write)
                  .release();
    const auto has = [&](const char* name) { return hosted_.attr("has")(name).cast<bool>(); };
    has_prepare_ = has("prepare");
    has_learning_rate_ = has("learning_rate");
    has_flops_ = has("flops_per_weight");
    updates_ = hosted_.attr("updates").cast<bool>();
  });
}

PythonTask::~PythonTask() {
  log_->close();
}

std::vector<v1::Parameter> PythonTask::parameters() {
  return call_python([&] {
    std::vector<v1::Parameter> list;
    for (const py::handle one : hosted_.attr("parameters")()) {
      const auto [name, tensor, group] = one.cast<std::tuple<std::string, py::object, std::string>>();
      list.push_back({name, from_python(tensor, "parameters() has"), group});
    }
    return list;
  });
}

std::vector<v1::Group> PythonTask::groups() {
  return call_python([&] {
    std::vector<v1::Group> list;
    for (const py::handle one : hosted_.attr("groups")()) {
      const auto [name, factor, decay, is_table] =
          one.cast<std::tuple<std::string, double, std::optional<double>, bool>>();
      list.push_back({name, factor, decay, is_table});
    }
    return list;
  });
}

std::vector<v1::State> PythonTask::state() {
  return call_python([&] {
    std::vector<v1::State> list;
    for (const py::handle one : hosted_.attr("state")()) {
      const auto [name, tensor, by] = one.cast<std::tuple<std::string, py::object, std::string>>();
      list.push_back({name, from_python(tensor, "state() has"), written_by(name, by)});
    }
    return list;
  });
}

std::vector<v1::Statistic> PythonTask::statistics() {
  return call_python([&] {
    std::vector<v1::Statistic> list;
    for (const py::handle one : hosted_.attr("statistics")()) {
      const auto [name, shape] = one.cast<std::pair<std::string, std::vector<std::int64_t>>>();
      list.push_back({name, shape});
    }
    return list;
  });
}

std::vector<v1::DataSet> PythonTask::data() {
  return call_python([&] {
    std::vector<v1::DataSet> list;
    for (const py::handle one : hosted_.attr("data")()) {
      const auto name = one["name"].cast<std::string>();
      list.push_back({.name = name,
                      .training = one["training"].cast<std::int64_t>(),
                      .held_out = one["held_out"].cast<std::int64_t>(),
                      .order = order_of(name, one["order"].cast<std::string>()),
                      .epoch = one["epoch"].cast<double>(),
                      .hash = one["hash"].cast<std::uint64_t>(),
                      .source = one["source"].cast<std::string>(),
                      .bytes = one["bytes"].cast<std::uint64_t>()});
    }
    return list;
  });
}

v1::Batch PythonTask::load(const v1::Samples& samples) {
  v1::Batch batch;
  call_python([&] {
    const py::tuple loaded =
        hosted_.attr("load")(samples.set, samples.held_out, to_python(numbers(samples.indexes)),
                             to_python(numbers(samples.draws)));
    for (const py::handle tensor : loaded[0]) batch.tensors.push_back(from_python(tensor, "load() gave"));
    batch.weight = loaded[1].cast<double>();
  });
  return batch;
}

/// On the processors the batch carries, as its last tensor, what its random numbers begin with (dropout): a
/// step that is computed again has the same ones, on whatever rank and after whatever else.
std::vector<at::Tensor> PythonTask::by_draw(const v1::Samples& samples) {
  if (!seeds_batches()) return {};
  return {at::scalar_tensor(mixed(seed_, samples.draws.front()), at::kLong)};
}

at::Tensor PythonTask::loss(const v1::Batch& batch, v1::Sums& sums) {
  std::vector<at::Tensor> tensors = batch.tensors;
  if (seeds_batches()) {
    seed_generator(tensors.back().item<std::int64_t>());
    tensors.pop_back();
  }
  return compute(batch, std::move(tensors), sums);
}

/// Without seeds of its own: it may run beside training, and the generator is one for both.
at::Tensor PythonTask::evaluate(const v1::Batch& batch, v1::Sums& sums) {
  std::vector<at::Tensor> tensors = batch.tensors;
  if (seeds_batches()) tensors.pop_back();
  return compute(batch, std::move(tensors), sums);
}

at::Tensor PythonTask::compute(const v1::Batch& batch, std::vector<at::Tensor> tensors, v1::Sums& sums) {
  using Counted = std::vector<std::pair<std::string, at::Tensor>>;
  Counted metrics, statistics;
  at::Tensor loss;
  call_python([&] {
    const auto counted = [](const py::handle& list, Counted& into) {
      for (const py::handle one : list) {
        const auto [name, value] = one.cast<std::pair<std::string, py::object>>();
        into.emplace_back(name, from_python(value, ("sums.add of '" + name + "' got").c_str()));
      }
    };
    const py::tuple given = hosted_.attr("loss")(list_of(tensors), batch.weight, batch.set, batch.held_out);
    loss = from_python(given[0], batch.held_out ? "evaluate() gave" : "loss() gave");
    counted(given[1], metrics);
    counted(given[2], statistics);
  });
  for (const auto& [name, value] : metrics) sums.add(name, value);
  for (const auto& [name, value] : statistics) sums.add_statistic(name, value);
  return loss;
}

void PythonTask::training(bool on) {
  call_python([&] { hosted_.attr("training")(on); });
}

void PythonTask::update(const std::vector<at::Tensor>& statistics, const at::Tensor& skip) {
  if (updates_) call_python([&] { hosted_.attr("update")(list_of(statistics), to_python(skip)); });
}

/// Control thread, which answers for this rank: it doesn't wait for a Python that is busy.
std::string PythonTask::prepare(const v1::Values& after) {
  if (!has_prepare_) return {};
  const OpenValues values(after);
  if (std::this_thread::get_id() == maker_)  // at the start, when nothing else waits
    return call_python([&] { return hosted_.attr("prepare")(reader(values.shared())).cast<std::string>(); });
  const auto answer = aside_.ask(
      [hosted = hosted_, file = file_, shared = values.shared()] {
        return in_python(file, [&] { return hosted.attr("prepare")(reader(shared)).cast<std::string>(); });
      },
      kPatience);
  return answer.value_or(fmt::format(
      "its prepare() gave no answer within {} ms, since Python is busy; try again", kPatience.count()));
}

void PythonTask::changed(const v1::Values& now, std::int64_t step) {
  const OpenValues values(now);
  call_python([&] { hosted_.attr("changed")(reader(values.shared()), step); });
}

std::string PythonTask::call(const std::string& action, const v1::Arguments& arguments, std::int64_t step) {
  return call_python(
      [&] { return hosted_.attr("call")(action, arguments.json(), step).cast<std::string>(); });
}

std::optional<double> PythonTask::learning_rate(std::int64_t step) const {
  if (!has_learning_rate_) return std::nullopt;
  return call_python([&] { return hosted_.attr("learning_rate")(step).cast<std::optional<double>>(); });
}

double PythonTask::flops_per_weight() const {
  if (!has_flops_) return 0;
  return call_python([&] { return hosted_.attr("flops_per_weight")().cast<double>(); });
}

}  // namespace footplate
