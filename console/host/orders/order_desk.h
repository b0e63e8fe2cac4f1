#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "console/host/run/host_state.h"
#include "console/host/scripts/client.h"
#include "protocol/order.h"

namespace footplate::host {

/// How far an order that is waited for has to come.
enum class OrderUntil { now, committed, final };

}  // namespace footplate::host

template <>
struct footplate::EnumWords<footplate::host::OrderUntil> {
  using Until = footplate::host::OrderUntil;
  static constexpr std::array kAll{std::pair{Until::now, std::string_view("now")},
                                   std::pair{Until::committed, std::string_view("committed")},
                                   std::pair{Until::final, std::string_view("final")}};
};

namespace footplate::host {

/// Orders on their way from clients and scripts to rank 0 and back: checks and sends them, and answers those
/// who wait for what comes of them. Owns the words (refs) that tell orders apart before rank 0 has numbered
/// them. One thread.
class OrderDesk {
 public:
  using Until = OrderUntil;

  /// Who waits.
  struct Asker {
    std::uint64_t client = 0;
    AnswerOf<OrderReport> answer;
    std::function<void(const OrderReport&)> note;  ///< set: a script, which hears of what is said on the way
  };

  /// `state` outlives it.
  explicit OrderDesk(HostState& state);

  /// Sends an order in the name of `client`. Returns its ref. Errors: what is wrong with it, a role that is
  /// too low (refused), rank 0 reads no more.
  Result<std::string> submit(const Client& client, Order order);

  /// Asks rank 0 to take an order back, unless it is final.
  void withdraw(const OrderBook::Entry& entry);

  /// Answers with the order's report once it has come as far as `until`, or at the time limit with
  /// `timed_out`. By `id`, or where that is 0 by `ref`.
  void wait(Asker asker, std::uint64_t id, const std::string& ref, Until until,
            std::optional<double> timeout_s);

  /// The same for a call's end. `of_script`: a chunk waits, and an interrupt ends its wait.
  void wait_call(std::uint64_t client, std::uint64_t order, std::size_t call, std::optional<double> timeout_s,
                 const AnswerOf<CallReport>& answer, bool of_script);

  /// The report of an order for a program; one that nobody agreed on in time is withdrawn first. An order for
  /// a later step is answered as soon as it is committed.
  void answer_with_outcome(std::uint64_t client, const std::string& ref, Until until, double timeout_s,
                           const AnswerOf<OrderReport>& answer);

  /// Whoever waits for an order is told once that rank 0, which would say whom it waits for, is silent
  /// itself.
  void tell_silence();

 private:
  Result<void> allowed(const Client& client, const Order& order) const;

  HostState& state_;
  std::uint64_t last_ref_ = 0;
  std::string ref_prefix_;     ///< differs from that of an earlier console of this run
  bool silence_told_ = false;  ///< to those who wait, since rank 0 was last heard
};

}  // namespace footplate::host
