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

const SumsLayout::Place& place_of(const std::map<std::string, SumsLayout::Place>& places,
                                  const std::string& name, const char* what) {
  const auto found = places.find(name);
  if (found != places.end()) return found->second;
  std::string known;
  for (const auto& [other, place] : places) known += (known.empty() ? "" : ", ") + other;
  throw std::invalid_argument(std::string("the task declares no ") + what + " '" + name + "'; it declares " +
                              (known.empty() ? "none" : known));
}

}  // namespace

SumsLayout::SumsLayout(const std::vector<v1::MetricDecl>& metrics,
                       const std::vector<v1::Statistic>& statistics) {
  for (const v1::MetricDecl& metric : metrics)
    if (!metric_places_.insert({metric.name, {size_++, {}}}).second)
      throw std::invalid_argument("the task declares the metric '" + metric.name + "' twice");
  metrics_ = size_;
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

const SumsLayout::Place& SumsLayout::metric(const std::string& name) const {
  return place_of(metric_places_, name, "metric");
}
const SumsLayout::Place& SumsLayout::statistic(const std::string& name) const {
  return place_of(statistic_places_, name, "statistic");
}

std::vector<at::Tensor> SumsLayout::statistics_of(const at::Tensor& row) const {
  std::vector<at::Tensor> parts;
  for (const std::string& name : statistics_) {
    const Place& place = statistic(name);
    parts.push_back(row.narrow(0, place.first, elements_of(place.shape)).view(place.shape));
  }
  return parts;
}

void RowOfSums::add(const std::string& metric, const at::Tensor& sum) {
  const SumsLayout::Place& place = layout_.metric(metric);
  if (sum.numel() != 1)
    throw std::invalid_argument("the sum of the metric '" + metric + "' has " + std::to_string(sum.numel()) +
                                " elements; it has to be one number, over the batch");
  const at::NoGradGuard no_grad;
  row_.narrow(0, place.first, 1).add_(sum.reshape({1}));
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
