#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/sim/sim_world.h"
#include "runtime/orders/coordinator.h"
#include "runtime/schema/schema_table.h"
#include "tests/unit/orders/as_json.h"

namespace footplate::testing {

/// A coordinator of three ranks, with what it sends and reports, for tests of what gives orders through it.
class CoordinatorFixture : public ::testing::Test {
 protected:
  using Clock = SteadyClock;

  /// The action of the last order that the ranks were asked about; "": none.
  std::string ordered() const {
    for (auto it = sent_.rbegin(); it != sent_.rend(); ++it)
      if (it->value("t", "") == "prepare") return it->at("order").at("calls").at(0).at("action");
    return "";
  }
  std::size_t orders() const {
    std::size_t count = 0;
    for (const Json& message : sent_)
      if (message.value("t", "") == "prepare") ++count;
    return count;
  }
  Settings settings(const std::string& name, const Value& value) {
    Settings settings = Settings::defaults(schema_);
    settings.set(name, value, "test");
    return settings;
  }
  std::function<void(EventData)> report() {
    return [this](const EventData& event) { reports_.push_back(told(event)); };
  }

  Schema schema_ = runtime_schema();
  Clock::time_point now_{std::chrono::seconds(1000)};
  SimWorld world_{3};
  std::unique_ptr<MessageChannel> channel_ = world_.channel(0);
  StatusTracker status_{3, {}, now_};
  std::vector<Json> sent_;
  std::vector<std::pair<std::string, Json>> reports_;
  Coordinator coordinator_{{schema_,
                            status_,
                            3,
                            [this](const message::ToRanks& message) { sent_.push_back(to_json(message)); },
                            [](const Report&) {},
                            {},
                            100}};
};

}  // namespace footplate::testing
