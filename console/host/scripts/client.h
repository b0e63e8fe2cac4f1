#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "console/host/run/connection.h"
#include "console/host/run/event_ring.h"
#include "console/host/run/waits.h"
#include "console/host/scripts/lua_session.h"
#include "protocol/schema.h"

namespace footplate::host {

/// One connected client: its connection, who it is, what it waits for.
struct Client {
  Client(std::uint64_t number, Connection its_connection)
      : id(number), session("s" + std::to_string(number)), connection(std::move(its_connection)) {}

  std::uint64_t id;
  std::string session;  ///< "s3"
  std::string user;
  Role role = Role::view;
  std::optional<std::string> attached_from;  ///< a person at a prompt, and where
  Connection connection;

  int open_requests = 0;        ///< received and not yet answered
  std::deque<EvalChunk> evals;  ///< waiting for the running chunk to end
  std::optional<EventRing::Reader> reader;
  std::uint64_t questions = 0;                  ///< that its chunks have asked so far
  std::function<void(bool yes)> open_question;  ///< takes the answer to the last; empty: nothing is asked
  std::unique_ptr<LuaSession> lua;              ///< from its first eval on

  bool gone = false;      ///< to be dropped at the end of the turn, or once its chunk has ended
  bool leaving = false;   ///< no more requests; dropped once everything is sent
  bool has_more = false;  ///< whole lines are read and not yet looked at
  std::optional<LuaSession::Clock::time_point> drop_at;  ///< it is gone, and its chunk has until then to end
};

}  // namespace footplate::host
