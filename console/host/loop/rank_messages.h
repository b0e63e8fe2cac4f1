#pragma once

#include "console/host/automation/automation.h"
#include "console/host/clients/clients.h"
#include "console/host/clients/sessions.h"
#include "console/host/run/host_state.h"
#include "console/host/run/stack_questions.h"

namespace footplate::host {

/// What rank 0 says (docs/protocol.md, "Rank 0 and the console"): brings each message to the parts that it is
/// for, and writes the journal. One thread.
class RankMessages {
 public:
  /// All of them outlive it.
  RankMessages(HostState& state, StackQuestions& stacks, Clients& clients, Sessions& sessions,
               Automation& automation)
      : state_(state), stacks_(stacks), clients_(clients), sessions_(sessions), automation_(automation) {}

  /// Error: its hello can't be understood, so nothing else can. Throws Json::exception where a field has the
  /// wrong type.
  Result<void> hear(const Json& message);

 private:
  Result<void> begin(const Json& hello);
  void event(const Json& message);
  void order_report(const Json& report);
  const OrderBook::Entry& record(const Json& report);
  void warn_if_late(const Json& report);
  Json with_metrics(const std::string& topic, const Json& data) const;

  HostState& state_;
  StackQuestions& stacks_;
  Clients& clients_;
  Sessions& sessions_;
  Automation& automation_;
};

}  // namespace footplate::host
