#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "protocol/schema.h"
#include "protocol/settings.h"
#include "runtime/base/clock.h"
#include "runtime/base/progress.h"
#include "runtime/base/times.h"
#include "runtime/comm/ledger.h"
#include "runtime/comm/message_channel.h"
#include "runtime/comm/world.h"
#include "runtime/control/recovery.h"
#include "runtime/control/welcome.h"
#include "runtime/orders/forecast.h"
#include "runtime/orders/gate_events.h"

namespace footplate {

/// What the console is told about the run (docs/protocol.md, `hello`).
struct RunInfo {
  std::string name;
  std::string id;
  std::filesystem::path directory;
  std::string socket;      ///< path of the console's socket
  std::string host;        ///< this rank's
  std::string user;        ///< whose run it is
  std::string started;     ///< ISO 8601
  std::string branch;      ///< of checkpoints, that this start saves into
  std::int64_t left = 0;   ///< step that ckpt.load went back from, to this start; 0: it did not
  std::int64_t began = 0;  ///< step that this start begins at
};

/// Rank 0 has started a console.
struct ConsoleStarted {
  pid_t pid = 0;
};

/// Rank 0, control thread: every report and event, in order, before the console hears of it (order reports
/// with the whole order where it is applied), and its consoles. May write files; training doesn't wait for
/// it. Every rank also hears what it applied itself.
using Observed = std::variant<EventData, OrderApplied, ConsoleStarted>;
using Observer = std::function<void(const Observed& observed)>;

struct ControlOptions {
  Schema schema;
  Settings settings;                  ///< at the start, equal on all ranks
  MessageChannel* channel = nullptr;  ///< has to outlive Control; used by its thread alone
  World* world = nullptr;             ///< the channel's; null: a lost rank ends the run. As long-lived
  /// Control thread, on rank 0, where ranks were lost with state that nobody else has. May be empty.
  NewestCheckpoint newest_checkpoint;
  Progress* progress = nullptr;    ///< has to outlive Control
  const Ledger* ledger = nullptr;  ///< may be null
  RunInfo run;
  Observer observer;  ///< may be empty
  /// Control thread, before this rank, as rank 0, has itself killed: what the observer was told is to outlive
  /// it. Bounded; may be empty.
  std::function<void()> before_exit;
  std::filesystem::path console_program;  ///< empty: no console. The one that rank 0 starts, whoever that is
  /// Control thread, the world is a new one; before anything is reported in it. `leads`: this rank has become
  /// rank 0, and keeps the run's records from now on. Returns the orders that are in those; empty where it
  /// doesn't lead.
  std::function<std::set<std::uint64_t>(const Membership&, bool leads)> on_world;
  /// Control thread, on rank 0: what those ranks said of why they leave; empty: nothing. May be empty itself.
  std::function<std::string(const std::vector<int>& origins)> why_lost;
  /// Control thread: how often ranks were lost in this start, for a process that joins; empty: never.
  std::function<int()> recoveries;
  /// Any thread: those who are left can't go on. Ends the process, resumable; where it returns,
  /// StepGate::enter() throws.
  std::function<void(const std::string& reason)> give_up;
  ControlTimes times;
  std::vector<Committed> ahead;      ///< all ranks the same: committed before the first step, by step
  std::uint64_t first_order_id = 1;  ///< rank 0: ids go on across restarts
  Json store = Json::object();       ///< of the checkpoint resumed from, equal on all ranks
  /// In a process that joins a run: what its rank 0 gave to World::grow(). `settings` and `store` are those
  /// in it. The first on_world says that it is one of the ranks; where the world breaks before, give_up is
  /// called.
  std::optional<Welcome> welcome;
  SteadyClock::time_point process_start = SteadyClock::now();  ///< run.time_limit counts from here
};

}  // namespace footplate
