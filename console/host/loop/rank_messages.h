#pragma once

#include "console/host/automation/automation.h"
#include "console/host/clients/clients.h"
#include "console/host/clients/sessions.h"
#include "console/host/run/host_state.h"
#include "console/host/run/rank_questions.h"

namespace footplate::host {

/// What rank 0 says (docs/protocol.md, "Rank 0 and the console"): brings each message to the parts that it is
/// for, and writes the journal. One thread.
class RankMessages {
 public:
  /// All of them outlive it.
  RankMessages(HostState& state, RankQuestions& questions, Clients& clients, Sessions& sessions,
               Automation& automation)
      : state_(state),
        questions_(questions),
        clients_(clients),
        sessions_(sessions),
        automation_(automation) {}

  /// Error: its hello can't be understood, so nothing else can.
  Result<void> hear(const RankZeroMessage& message);

 private:
  Result<void> begin(const RankZeroHello& hello);
  void on(const RankZeroHello& /*begin() has it*/) {}
  void on(const StatusUpdate& update);
  void on(const SettingsUpdate& update);
  void on(const OrderReport& report);
  void on(const CallReport& report);
  void on(const RanksAnswer& answer) { questions_.answer(answer); }
  void on(const Event& event);
  void on(const RunEnd& end);
  const OrderBook::Entry& record(const OrderReport& report);
  void warn_if_late(const OrderReport& report);

  HostState& state_;
  RankQuestions& questions_;
  Clients& clients_;
  Sessions& sessions_;
  Automation& automation_;
};

}  // namespace footplate::host
