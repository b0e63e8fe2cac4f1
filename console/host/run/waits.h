#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/messages/order_report.h"
#include "protocol/result.h"

namespace footplate::host {

/// Where the outcome of something goes, once.
template <class T>
using AnswerOf = std::function<void(Result<T>)>;

/// What a client or a script gets, as it leaves the process.
using Answer = AnswerOf<Json>;

/// Requests whose answer the run still owes. Bounded by the requests that a client may have open.
class Waits {
 public:
  using Clock = std::chrono::steady_clock;

  /// Tells whoever waits its answer.
  using Telling = std::function<void()>;

  struct Wait {
    bool of_script = false;                         ///< asked by the client's Lua, not by the client itself
    bool for_step = false;                          ///< wants to know of steps as they are reached
    std::uint64_t owner = 0;                        ///< the client
    std::function<std::optional<Telling>()> ready;  ///< tells the answer, once there is one
    std::optional<Clock::time_point> deadline;
    std::function<Telling()> late;  ///< tells the answer at the deadline
    std::function<void(const Error& error)> failed;
    std::string order_ref;  ///< set: `note` hears this order's `waiting` reports
    std::uint64_t order_id = 0;
    std::function<void(const OrderReport& report)> note;
  };

  /// A wait for a T: `answer` is called with what `ready` says once it says something, or at a deadline with
  /// what `late` says.
  template <class T>
  static Wait wait_for(AnswerOf<T> answer, std::function<std::optional<Result<T>>()> ready,
                       std::function<Result<T>()> late = nullptr) {
    const auto telling = [answer](Result<T> result) -> Telling {
      return [answer, result = std::move(result)]() mutable { answer(std::move(result)); };
    };
    Wait wait;
    wait.ready = [ready = std::move(ready), telling]() -> std::optional<Telling> {
      auto result = ready();
      return result ? std::optional(telling(*std::move(result))) : std::nullopt;
    };
    if (late) wait.late = [late = std::move(late), telling] { return telling(late()); };
    wait.failed = [answer](const Error& error) { answer(tl::unexpected(error)); };
    return wait;
  }

  /// Answers at once where it can.
  void add(Wait wait, Clock::time_point now);

  /// Looks at every wait again. Called after each message of rank 0 and at next_deadline().
  void look(Clock::time_point now);

  void note(std::uint64_t order_id, const std::string& order_ref, const OrderReport& report);
  /// Every wait for an order hears it.
  void note_all(const OrderReport& report);
  void forget(std::uint64_t owner);
  void forget_script(std::uint64_t owner);
  void fail_all(const Error& error);
  std::optional<Clock::time_point> next_deadline() const;
  std::ptrdiff_t for_steps() const;  ///< number of waits for a step

 private:
  std::list<Wait> waits_;
};

}  // namespace footplate::host
