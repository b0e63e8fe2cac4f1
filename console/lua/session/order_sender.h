#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "console/lua/session/chunk_console.h"

namespace footplate::lua {

/// Sends what the running chunk has staged, and waits for what becomes of it (docs/lua.md, "Chunks and
/// waiting"). One thread.
class OrderSender {
 public:
  /// Both outlive it.
  OrderSender(const Greeting& greeting, ChunkConsole& console) : greeting_(greeting), console_(console) {}

  /// Sends what is staged and waits until it is applied (an order for a later step: until it is committed).
  /// Throws ScriptError: refused, timed out (and withdrawn), interrupted (and withdrawn).
  void commit();

  /// What commit() would send, no longer staged: checked as a whole, and a person asked about it. Throws
  /// ScriptError, also where the answer is no.
  std::vector<std::shared_ptr<StagedOrder>> take_asked();

  /// The same for what has to be put back although the chunk is being ended by Ctrl-C; a second one counts.
  void commit_at_last();

  /// Nothing is sent while a chunk is only registered; where it is checked, its first order is checked as a
  /// whole and written down in the activity. Throws ScriptError.
  void plan();

  /// Until an order that was sent is applied. Throws ScriptError as commit does.
  void wait_applied(StagedOrder& order, std::optional<double> timeout_s);

  /// The result of a call of it, once that has ended. Throws ScriptError also where the call failed or was
  /// cancelled.
  Json wait_call(StagedOrder& order, int call, std::optional<double> timeout_s);

  /// What is known of a call now, with the order's report brought up to date; nothing while the order isn't
  /// applied, and for the order itself (`call` < 0).
  std::optional<CallReport> call_now(StagedOrder& order, int call);

  /// Withdraws an order, or takes it out of what is staged; where it is applied, cancels its call. Returns
  /// why there is nothing to cancel, or nothing.
  std::string cancel(StagedOrder& order, int call);

  /// Brings order.report up to date.
  void refresh(StagedOrder& order);

  /// Where a person sits at the client: asks, and throws ScriptError where the answer is no.
  void confirm(const std::string& text);

 private:
  void refuse_steps_behind(const StagedOrder& order);
  void ask_person(const std::vector<std::shared_ptr<StagedOrder>>& orders);
  void send(StagedOrder& order);
  void await(StagedOrder& order);
  void warn_if_late(const StagedOrder& order);
  void tell_applied(const StagedOrder& order);
  void withdraw_late(StagedOrder& order, bool interrupted);
  CallReport ask_call(const StagedOrder& order, int call, std::optional<double> timeout_s);

  const Greeting& greeting_;
  ChunkConsole& console_;
};

}  // namespace footplate::lua
