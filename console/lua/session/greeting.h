#pragma once

#include <string>
#include <vector>

#include "console/lua/core/limits.h"
#include "protocol/messages/session_messages.h"
#include "protocol/schema.h"
#include "protocol/settings.h"

namespace footplate::lua {

/// What the console tells a session when it starts, checked.
struct Greeting {
  Schema schema;
  Settings settings;
  RunIdentity run;
  std::string script;   ///< path of a job's, as given; empty: it is none
  std::string session;  ///< "s3"
  std::string user;
  Role role = Role::admin;
  Limits limits;
  SessionKind kind = SessionKind::session;
  std::vector<std::string> arguments;  ///< a job's, after --
  bool resumed = false;                ///< a job that has run before in this run

  /// Whether it gets io and os.
  bool trusted() const { return kind == SessionKind::job || kind == SessionKind::check; }

  /// Errors (usage, failed): a malformed schema, settings that don't fit it, an unknown role, a limit that
  /// is none.
  static Result<Greeting> from(const SessionHello& hello);
};

}  // namespace footplate::lua
