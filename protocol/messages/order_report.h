#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/messages/enum_words.h"
#include "protocol/order.h"

namespace footplate {

/// What has become of an order.
enum class OrderState {
  sent,       ///< on its way to rank 0, which hasn't answered
  accepted,   ///< rank 0 gave it a number and asks the ranks
  waiting,    ///< still asking, or committed and not yet applied everywhere
  committed,  ///< all ranks agreed; it applies at `step`
  applied,    ///< confirmed by all ranks
  refused,    ///< by the schema or by a rank; nothing changed anywhere
  aborted,    ///< no outcome in time; nothing changed anywhere
  withdrawn,  ///< taken back before its step
};
template <>
struct EnumWords<OrderState> {
  static constexpr std::array kAll{
      std::pair{OrderState::sent, std::string_view("sent")},
      std::pair{OrderState::accepted, std::string_view("accepted")},
      std::pair{OrderState::waiting, std::string_view("waiting")},
      std::pair{OrderState::committed, std::string_view("committed")},
      std::pair{OrderState::applied, std::string_view("applied")},
      std::pair{OrderState::refused, std::string_view("refused")},
      std::pair{OrderState::aborted, std::string_view("aborted")},
      std::pair{OrderState::withdrawn, std::string_view("withdrawn")},
  };
};

/// Nothing comes after it.
constexpr bool is_final(OrderState state) {
  return state == OrderState::applied || state == OrderState::refused || state == OrderState::aborted ||
         state == OrderState::withdrawn;
}

/// What has become of a call.
enum class CallState { running, done, failed, cancelled };
template <>
struct EnumWords<CallState> {
  static constexpr std::array kAll{
      std::pair{CallState::running, std::string_view("running")},
      std::pair{CallState::done, std::string_view("done")},
      std::pair{CallState::failed, std::string_view("failed")},
      std::pair{CallState::cancelled, std::string_view("cancelled")},
  };
};
constexpr bool is_final(CallState state) {
  return state != CallState::running;
}

/// A call of an applied order, that is running now.
struct StartedCall {
  std::size_t call = 0;  ///< its place among the order's calls
  std::string action;
  bool operator==(const StartedCall&) const = default;
};

/// What rank 0 says of an order.
struct OrderReport {
  OrderState state = OrderState::sent;
  std::uint64_t id = 0;              ///< 0: rank 0 has given it none
  std::string ref;                   ///< the word that its sender chose
  std::optional<std::int64_t> step;  ///< committed: where it applies
  std::optional<Applied> applied;
  std::vector<StartedCall> calls;  ///< applied: what is running now
  std::string error;               ///< why it isn't; of an applied one an alarm: the ranks disagree
  std::string text;                ///< waiting: for whom
  std::optional<Order> order;      ///< where it is applied, or listed
  bool timed_out = false;          ///< whoever asked has waited as long as it wanted to
  std::string silent;              ///< then: what is known of rank 0, where that is silent
};
Json to_json(const OrderReport& report);
Result<void> read_json(const Json& json, OrderReport& report);

/// What rank 0 says of a call.
struct CallReport {
  std::uint64_t order = 0;
  std::size_t call = 0;
  std::string action;
  CallState state = CallState::running;
  Json result;  ///< as the action gives it; null: nothing
  std::string error;
  bool timed_out = false;  ///< as in OrderReport
};
Json to_json(const CallReport& report);
Result<void> read_json(const Json& json, CallReport& report);

}  // namespace footplate
