#pragma once

#include <functional>
#include <string>

#include "footplate/task.h"
#include "protocol/settings.h"
#include "runtime/device/compute_device.h"

namespace footplate {

/// Settings as a task reads them. A name or a type that isn't there throws std::invalid_argument.
class SettingsValues final : public v1::Values {
 public:
  explicit SettingsValues(Settings settings) : settings_(std::move(settings)) {}

  bool boolean(const std::string& name) const override;
  std::int64_t integer(const std::string& name) const override;
  double number(const std::string& name) const override;
  std::string text(const std::string& name) const override;

 private:
  template <class T>
  const T& of_type(const std::string& name, const char* type) const;
  Settings settings_;
};

/// What a task is made with.
class TaskHost final : public v1::Host {
 public:
  /// `log` may be empty; `device` outlives it.
  TaskHost(const Settings& settings, int world_size, const ComputeDevice& device,
           std::function<void(const std::string&)> log)
      : settings_(settings), world_size_(world_size), device_(device), log_(std::move(log)) {}

  const v1::Values& settings() const override { return settings_; }
  at::Device device() const override { return device_.where(); }
  std::uint64_t seed() const override { return static_cast<std::uint64_t>(settings_.integer("run.seed")); }
  int world_size() const override { return world_size_; }
  void log(const std::string& text) const override {
    if (log_) log_(text);
  }

 private:
  const SettingsValues settings_;
  const int world_size_;
  const ComputeDevice& device_;
  const std::function<void(const std::string&)> log_;
};

}  // namespace footplate
