#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "footplate/task.h"

namespace footplate {

/// What was computed of one data set, or of all.
struct SetMetrics {
  double loss = 0;                         ///< mean over the weight; of several data sets alone
  double weight = 0;                       ///< likewise; 0: nothing was computed
  std::map<std::string, double> declared;  ///< by name
};

/// The same of all data sets together; where there are several also of each, in their order.
struct TaskMetrics {
  SetMetrics all;
  std::vector<SetMetrics> sets;
};

/// What a row of sums is counted for: metrics with `in_training = false` are of evaluations alone.
enum class SumsOf { evaluation, training };

/// Where each of a task's metrics and statistics has its place in one row of sums. What is measured comes
/// first: the metrics in the order of their declaration; of several data sets, for each its loss, its weight
/// and its metrics.
class SumsLayout {
 public:
  /// Programming error of the task, thrown (std::invalid_argument): a name twice, a shape with a negative
  /// size.
  SumsLayout(const std::vector<v1::MetricDecl>& metrics, const std::vector<v1::Statistic>& statistics,
             int sets = 1, SumsOf of = SumsOf::evaluation);

  struct Place {
    std::int64_t first = 0;
    std::vector<std::int64_t> shape;  ///< empty: one element
  };
  /// Throws std::invalid_argument where there is none.
  std::int64_t metric(const std::string& name, int set) const;
  const Place& statistic(const std::string& name) const;
  bool has_several_sets() const { return sets_ > 1; }
  std::int64_t loss(int set) const { return block(set); }  ///< of several sets
  std::int64_t weight(int set) const { return block(set) + 1; }

  std::int64_t measured() const { return measured_; }  ///< elements
  std::int64_t size() const { return size_; }          ///< elements, of all
  /// The statistics' parts of such a row, as views, in their order.
  std::vector<at::Tensor> statistics_of(const at::Tensor& row) const;
  /// What the measured part of a row comes to, over so much weight.
  TaskMetrics metrics_of(std::span<const double> measured, double weight) const;

 private:
  std::int64_t block(int set) const { return set * (measured_ / sets_); }
  std::int64_t before_metrics() const { return has_several_sets() ? 2 : 0; }
  std::map<std::string, double> declared(std::span<const double> sums, double weight) const;

  std::vector<v1::MetricDecl> metrics_;
  std::set<std::string> of_evaluations_alone_;         ///< metrics without a place
  std::map<std::string, std::int64_t> metric_places_;  ///< in their set's block
  std::map<std::string, Place> statistic_places_;
  std::vector<std::string> statistics_;
  int sets_ = 1;
  std::int64_t measured_ = 0;
  std::int64_t size_ = 0;
};

/// Adds to a row of sums; the row's elements are floats or doubles on the run's device. `statistics`: whether
/// the row has room for them.
class RowOfSums final : public v1::Sums {
 public:
  RowOfSums(const SumsLayout& layout, at::Tensor row, bool statistics)
      : layout_(layout), row_(std::move(row)), statistics_(statistics) {}

  /// What is added from here on is of a batch of that data set.
  void begin(const v1::Batch& batch);
  /// Its loss, without reading it.
  void add_loss(const at::Tensor& loss);

  void add(const std::string& metric, const at::Tensor& sum) override;
  void add_statistic(const std::string& statistic, const at::Tensor& values) override;

 private:
  const SumsLayout& layout_;
  const at::Tensor row_;
  const bool statistics_;
  int set_ = 0;
};

}  // namespace footplate
