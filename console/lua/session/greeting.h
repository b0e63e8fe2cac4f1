#pragma once

#include <string>
#include <vector>

#include "console/lua/core/limits.h"
#include "protocol/schema.h"
#include "protocol/settings.h"

namespace footplate::lua {

/// What a process of footplate-lua is for.
enum class Kind {
  session,  ///< the chunks of one client
  job,      ///< a job script, and the rules that it registers
  rules,    ///< the run's rules, from the source of the chunks that registered them
  check,    ///< footplate check --script: nothing is sent anywhere
};

/// What the console tells a session when it starts.
struct Greeting {
  Schema schema;
  Settings settings;
  Json run = Json::object();  ///< name, id, …
  std::string session;        ///< "s3"
  std::string user;
  Role role = Role::admin;
  Limits limits;
  Kind kind = Kind::session;
  std::vector<std::string> arguments;  ///< a job's, after --
  bool resumed = false;                ///< a job that has run before in this run
  bool trusted() const { return kind == Kind::job || kind == Kind::check; }  ///< gets io and os

  /// From the console's hello.
  static Result<Greeting> from_json(const Json& hello);
};

}  // namespace footplate::lua
