#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "console/lua/core/limits.h"
#include "console/lua/session/stage.h"
#include "protocol/messages/rules_and_jobs.h"

namespace footplate::lua {

/// A rule as its chunk registered it; handles share it. What the console keeps of it is `spec`
/// (docs/protocol.md, "Rules").
struct RegisteredRule {
  RuleSpec spec;
  std::int64_t number = 0;  ///< the console's; 0 until it has one
  bool dropped = false;     ///< its chunk failed, or off() came before the chunk's end
};

/// What a running chunk or handler has of its own. A job's handlers run while its script waits.
struct Activity {
  /// What becomes of what it asks for.
  enum class Mode {
    chunk,        ///< orders are sent, rules registered
    registering,  ///< only its rules take effect; it ends at its first wait
    handler,      ///< of a rule: orders are sent
  };

  Activity(const Schema& schema, const Settings& settings, Mode its_mode)
      : mode(its_mode), stage(schema, settings) {}

  Mode mode;
  Stage stage;
  ChunkClock clock;
  std::chrono::duration<double> limit{0};
  std::chrono::duration<double> order_timeout{30};
  std::string source;                                  ///< for the journal
  std::string name;                                    ///< of the chunk
  std::string stop;                                    ///< why it has to end; empty while it may go on
  std::size_t printed = 0;                             ///< bytes
  std::optional<Error> last_error;                     ///< of a binding: gives the chunk's error its kind
  std::vector<std::shared_ptr<RegisteredRule>> rules;  ///< that it has registered and not yet sent
  bool asks = false;                                   ///< a person sits at its client, who can be asked
  bool has_waited = false;
  bool ended_early = false;  ///< at its first wait, as registering does
  std::string waits_for;     ///< that wait
  std::string planned;       ///< footplate check: what it would have ordered by then
};

}  // namespace footplate::lua
