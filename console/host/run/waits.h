#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/result.h"

namespace footplate::host {

using Answer = std::function<void(Result<Json>)>;

/// Requests whose answer the run still owes. Bounded by the requests that a client may have open.
class Waits {
 public:
  using Clock = std::chrono::steady_clock;

  struct Wait {
    bool of_script = false;   ///< asked by the client's Lua, not by the client itself
    bool for_step = false;    ///< wants to know of steps as they are reached
    std::uint64_t owner = 0;  ///< the client
    std::function<std::optional<Result<Json>>()> ready;  ///< the answer once there is one
    std::optional<Clock::time_point> deadline;
    std::function<Result<Json>()> late;  ///< the answer at the deadline
    Answer answer;
    std::string order_ref;  ///< set: `note` hears this order's `waiting` reports
    std::uint64_t order_id = 0;
    std::function<void(const Json& report)> note;
  };

  /// Answers at once where it can.
  void add(Wait wait, Clock::time_point now);

  /// Looks at every wait again. Called after each message of rank 0 and at next_deadline().
  void look(Clock::time_point now);

  void note(std::uint64_t order_id, const std::string& order_ref, const Json& report);
  /// Every wait for an order hears it.
  void note_all(const Json& report);
  void forget(std::uint64_t owner);
  void forget_script(std::uint64_t owner);
  void fail_all(const Error& error);
  std::optional<Clock::time_point> next_deadline() const;
  std::ptrdiff_t for_steps() const;  ///< number of waits for a step

 private:
  std::list<Wait> waits_;
};

}  // namespace footplate::host
