#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "footplate/task.h"

namespace footplate {

/// Where each of a task's metrics and statistics has its place in one row of sums: metrics first, in the
/// order in which they are declared.
class SumsLayout {
 public:
  /// Programming error of the task, thrown (std::invalid_argument): a name twice, a shape with a negative
  /// size.
  SumsLayout(const std::vector<v1::MetricDecl>& metrics, const std::vector<v1::Statistic>& statistics);

  struct Place {
    std::int64_t first = 0;
    std::vector<std::int64_t> shape;  ///< empty: one element
  };
  const Place& metric(const std::string& name) const;  ///< throws std::invalid_argument where there is none
  const Place& statistic(const std::string& name) const;

  std::int64_t metrics() const { return metrics_; }  ///< elements
  std::int64_t size() const { return size_; }        ///< elements, of all
  /// The statistics' parts of such a row, as views, in their order.
  std::vector<at::Tensor> statistics_of(const at::Tensor& row) const;

 private:
  std::map<std::string, Place> metric_places_, statistic_places_;
  std::vector<std::string> statistics_;
  std::int64_t metrics_ = 0;
  std::int64_t size_ = 0;
};

/// Adds to a row of sums; the row's elements are floats or doubles on the run's device. `statistics`: whether
/// the row has room for them.
class RowOfSums final : public v1::Sums {
 public:
  RowOfSums(const SumsLayout& layout, at::Tensor row, bool statistics)
      : layout_(layout), row_(std::move(row)), statistics_(statistics) {}

  void add(const std::string& metric, const at::Tensor& sum) override;
  void add_statistic(const std::string& statistic, const at::Tensor& values) override;

 private:
  const SumsLayout& layout_;
  const at::Tensor row_;
  const bool statistics_;
};

}  // namespace footplate
