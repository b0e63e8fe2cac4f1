#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "footplate/task.h"
#include "runtime/python/library/aside.h"

namespace footplate {

/// A class of Python's behind v1::Task (footplate/hosting.py, class Hosted). What it raises is thrown as
/// PythonError; the traceback goes to the rank's log. Python's objects aren't released: they go with the
/// process, and a tensor of theirs is never freed without the GIL.
class PythonTask final : public v1::Task {
 public:
  /// `task_class`: of that file.
  PythonTask(pybind11::handle task_class, std::string file, const v1::Host& host);
  ~PythonTask() override;

  std::vector<v1::Parameter> parameters() override;
  std::vector<v1::Group> groups() override;
  std::vector<v1::State> state() override;
  std::vector<v1::Statistic> statistics() override;
  std::vector<v1::DataSet> data() override;
  v1::Batch load(const v1::Samples& samples) override;
  std::vector<at::Tensor> by_draw(const v1::Samples& samples) override;
  at::Tensor loss(const v1::Batch& batch, v1::Sums& sums) override;
  at::Tensor evaluate(const v1::Batch& batch, v1::Sums& sums) override;
  void training(bool on) override;
  void update(const std::vector<at::Tensor>& statistics, const at::Tensor& skip) override;
  std::string prepare(const v1::Values& after) override;
  void changed(const v1::Values& now, std::int64_t step) override;
  std::string call(const std::string& action, const v1::Arguments& arguments, std::int64_t step) override;
  std::optional<double> learning_rate(std::int64_t step) const override;
  double flops_per_weight() const override;

 private:
  struct Log;
  template <class Body>
  auto call_python(Body body) const;
  at::Tensor compute(const v1::Batch& batch, std::vector<at::Tensor> tensors, v1::Sums& sums);
  bool seeds_batches() const { return device_.is_cpu(); }

  const std::string file_;
  const at::Device device_;
  const std::uint64_t seed_;
  const std::shared_ptr<Log> log_;
  const std::thread::id maker_ = std::this_thread::get_id();
  pybind11::handle hosted_;
  bool has_prepare_ = false, has_learning_rate_ = false, has_flops_ = false, updates_ = false;
  Aside aside_;
};

}  // namespace footplate
