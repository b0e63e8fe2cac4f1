#pragma once

#include <functional>
#include <string>

#include "console/host/automation/automation.h"
#include "console/host/clients/clients.h"
#include "console/host/clients/sessions.h"
#include "console/host/orders/order_desk.h"
#include "console/host/run/host_state.h"
#include "console/host/run/rank_questions.h"

namespace footplate::host {

/// What the operations of the console work on.
struct Api {
  HostState& host;
  RankQuestions& questions;
  Clients& clients;
  Sessions& sessions;
  OrderDesk& orders;
  Automation& automation;
};

/// Whom a request comes from, and where its answer goes: at once, or once a wait of it has ended.
struct Request {
  Client& client;
  Json id;
  const Json& line;  ///< as it came: the source of an order
  Answer answer;
  std::function<void(const OrderReport&)> note;  ///< of a script: takes what is said on the way to the answer
};

/// Answers a client's line (docs/protocol.md, "Clients and the console").
void answer_client(Api& api, Client& client, const std::string& line);

/// Answers what a Lua process of `client` asks: a session's, a job's or the rules'.
void answer_script(Api& api, Client& client, const SessionRequest& request);

}  // namespace footplate::host
