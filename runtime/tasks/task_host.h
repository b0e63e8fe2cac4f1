#pragma once

#include <functional>
#include <string>

#include "footplate/task.h"
#include "protocol/json.h"
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

/// Arguments of an action, checked by the schema: an object by parameter name.
class CallArguments final : public v1::Arguments {
 public:
  explicit CallArguments(const Json& arguments) : arguments_(arguments) {}

  bool boolean(const std::string& name) const override;
  std::int64_t integer(const std::string& name) const override;
  double number(const std::string& name) const override;
  std::string text(const std::string& name) const override;
  bool has(const std::string& name) const override;
  std::string json() const override { return arguments_.dump(); }

 private:
  const Json& at(const std::string& name) const;
  const Json& arguments_;
};

/// Where a task is made.
struct TaskPlace {
  int world_size = 1;                                ///< at the start
  std::function<int()> rank = {};                    ///< of now; empty: 0
  std::string folder = {};                           ///< the run's; empty: none
  std::function<void(const std::string&)> log = {};  ///< may be empty
  bool asks_task = true;  ///< whether the settings are possible; a run that goes on has them already
};

/// What a task is made with.
class TaskHost final : public v1::Host {
 public:
  /// `device` outlives it.
  TaskHost(const Settings& settings, TaskPlace place, const ComputeDevice& device)
      : settings_(settings), place_(std::move(place)), device_(device) {}

  const v1::Values& settings() const override { return settings_; }
  at::Device device() const override { return device_.where(); }
  std::uint64_t seed() const override { return static_cast<std::uint64_t>(settings_.integer("run.seed")); }
  int world_size() const override { return place_.world_size; }
  int rank() const override { return place_.rank ? place_.rank() : 0; }
  std::string folder() const override { return place_.folder; }
  void log(const std::string& text) const override {
    if (place_.log) place_.log(text);
  }

 private:
  const SettingsValues settings_;
  const TaskPlace place_;
  const ComputeDevice& device_;
};

}  // namespace footplate
