#include "runtime/tasks/task_sums.h"

#include <ATen/core/grad_mode.h>

#include <numeric>
#include <stdexcept>
#include <utility>

namespace footplate {
namespace {

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

template <class T>
const T& place_of(const std::map<std::string, T>& places, const std::string& name, const char* what) {
  const auto found = places.find(name);
  if (found != places.end()) return found->second;
  std::string known;
  for (const auto& [other, place] : places) known += (known.empty() ? "" : ", ") + other;
  throw std::invalid_argument(std::string("the task declares no ") + what + " '" + name + "'; it declares " +
                              (known.empty() ? "none" : known));
}

}  // namespace

SumsLayout::SumsLayout(const std::vector<v1::MetricDecl>& metrics,
                       const std::vector<v1::Statistic>& statistics, int sets, SumsOf of)
    : sets_(sets) {
  for (const v1::MetricDecl& metric : metrics) {
    if (of == SumsOf::training && !metric.in_training)
      of_evaluations_alone_.insert(metric.name);
    else
      metrics_.push_back(metric);
  }
  std::int64_t of_a_set = before_metrics();
  for (const v1::MetricDecl& metric : metrics_)
    if (!metric_places_.insert({metric.name, of_a_set++}).second)
      throw std::invalid_argument("the task declares the metric '" + metric.name + "' twice");
  size_ = measured_ = sets * of_a_set;
  for (const v1::Statistic& statistic : statistics) {
    for (const std::int64_t dimension : statistic.shape)
      if (dimension < 0)
        throw std::invalid_argument("the shape of the statistic '" + statistic.name + "' is negative");
    if (!statistic_places_.insert({statistic.name, {size_, statistic.shape}}).second)
      throw std::invalid_argument("the task has the statistic '" + statistic.name + "' twice");
    statistics_.push_back(statistic.name);
    size_ += elements_of(statistic.shape);
  }
}

std::int64_t SumsLayout::metric(const std::string& name, int set) const {
  if (of_evaluations_alone_.contains(name))
    throw std::invalid_argument("the metric '" + name +
                                "' is of evaluations alone (in_training = false); add it only where "
                                "batch.held_out is true");
  return block(set) + place_of(metric_places_, name, "metric");
}
const SumsLayout::Place& SumsLayout::statistic(const std::string& name) const {
  return place_of(statistic_places_, name, "statistic");
}

std::map<std::string, double> SumsLayout::declared(std::span<const double> sums, double weight) const {
  std::map<std::string, double> values;
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    values[metrics_[i].name] = metrics_[i].mean ? sums[i] / weight : sums[i];
  return values;
}

TaskMetrics SumsLayout::metrics_of(std::span<const double> measured, double weight) const {
  TaskMetrics metrics;
  metrics.all.weight = weight;
  if (!has_several_sets()) {
    metrics.all.declared = declared(measured, weight);
    return metrics;
  }
  std::vector<double> all(metrics_.size());
  for (int set = 0; set < sets_; ++set) {
    const auto sums = measured.subspan(static_cast<std::size_t>(block(set) + before_metrics()), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += sums[i];
    SetMetrics of_set;
    of_set.weight = measured[static_cast<std::size_t>(this->weight(set))];
    if (of_set.weight > 0) {
      of_set.loss = measured[static_cast<std::size_t>(loss(set))] / of_set.weight;
      of_set.declared = declared(sums, of_set.weight);
    }
    metrics.sets.push_back(std::move(of_set));
  }
  metrics.all.declared = declared(all, weight);
  return metrics;
}

std::vector<at::Tensor> SumsLayout::statistics_of(const at::Tensor& row) const {
  std::vector<at::Tensor> parts;
  for (const std::string& name : statistics_) {
    const Place& place = statistic(name);
    parts.push_back(row.narrow(0, place.first, elements_of(place.shape)).view(place.shape));
  }
  return parts;
}

void RowOfSums::begin(const v1::Batch& batch) {
  set_ = batch.set;
  if (layout_.has_several_sets()) row_.narrow(0, layout_.weight(set_), 1).add_(batch.weight);
}

void RowOfSums::add_loss(const at::Tensor& loss) {
  if (layout_.has_several_sets()) row_.narrow(0, layout_.loss(set_), 1).add_(loss.reshape({1}));
}

void RowOfSums::add(const std::string& metric, const at::Tensor& sum) {
  const std::int64_t place = layout_.metric(metric, set_);
  if (sum.numel() != 1)
    throw std::invalid_argument("the sum of the metric '" + metric + "' has " + std::to_string(sum.numel()) +
                                " elements; it has to be one number, over the batch");
  const at::NoGradGuard no_grad;
  row_.narrow(0, place, 1).add_(sum.reshape({1}));
}

void RowOfSums::add_statistic(const std::string& statistic, const at::Tensor& values) {
  const SumsLayout::Place& place = layout_.statistic(statistic);
  if (values.sizes() != at::IntArrayRef(place.shape))
    throw std::invalid_argument("the statistic '" + statistic +
                                "' has another shape than it was declared with");
  if (!statistics_) return;
  const at::NoGradGuard no_grad;
  row_.narrow(0, place.first, values.numel()).add_(values.reshape({-1}));
}

}  // namespace footplate
