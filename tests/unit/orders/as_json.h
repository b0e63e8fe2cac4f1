#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "protocol/overloaded.h"
#include "runtime/orders/gate_events.h"
#include "runtime/watch/messages.h"
#include "runtime/watch/report.h"

// What tests write and look at as JSON, by the same ways as what leaves and enters a process.
namespace footplate::testing {

/// What has to be readable.
template <class T>
T from_json(const Json& json) {
  T value{};
  const auto read = read_json(json, value);
  EXPECT_TRUE(read) << json << ": " << read.error().message;
  return value;
}

inline message::ToRankZero to_rank_zero(const Json& json) {
  const auto read = message::from_json(json);
  EXPECT_TRUE(read) << json << ": " << read.error().message;
  return std::get<message::ToRankZero>(*read);
}

inline ConsoleMessage from_console(const Json& json) {
  auto read = console_message_from_json(json);
  EXPECT_TRUE(read) << json << ": " << read.error().message;
  return *std::move(read);
}

inline SubmitOrder submitted(const std::string& ref, const Json& order) {
  return std::get<SubmitOrder>(from_console({{"type", "order"}, {"ref", ref}, {"order", order}}));
}

/// Topic and data.
using Told = std::pair<std::string, Json>;
inline Told told(const EventData& event) {
  return {std::string(to_string(topic_of(event))), to_json(event)};
}
/// A report that is no event, by its type on the line to the console.
inline Told told(const Report& report) {
  return std::visit(Overloaded{[](const EventData& event) { return told(event); },
                               [](const auto& other) {
                                 Json line = to_json(RankZeroMessage(other));
                                 return Told(line["type"], std::move(line));
                               }},
                    report);
}

}  // namespace footplate::testing
