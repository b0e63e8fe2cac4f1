#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "console/host/run/connection.h"
#include "console/host/run/event_ring.h"
#include "console/host/run/journal.h"
#include "console/host/run/order_book.h"
#include "console/host/run/run_view.h"
#include "console/host/run/session_limits.h"
#include "console/host/run/waits.h"
#include "protocol/schema.h"

namespace footplate::host {

struct ConsoleOptions {
  std::filesystem::path run_directory;
  std::filesystem::path lua_program;  ///< footplate-lua
  int rank_fd = 3;                    ///< the socketpair to rank 0
  int signal_fd = -1;                 ///< becomes readable when the console has to end; -1: none
  Role role = Role::admin;            ///< what this user's clients may do
  Limits limits;
};

/// What all parts of the console work with: what is known of the run, who waits for something of it, and the
/// line to rank 0. The members are the parts' to use; each has its own class. One thread.
struct HostState {
  using Clock = std::chrono::steady_clock;

  explicit HostState(ConsoleOptions its_options);
  HostState(const HostState&) = delete;
  HostState& operator=(const HostState&) = delete;

  /// Queues a message for rank 0.
  void to_rank(const Json& message);

  /// An event of the console's own, for whoever has subscribed to its topic.
  void publish(const std::string& topic, const Json& data);

  /// Counts an event that scripts wait for (run.wait), and keeps the last one.
  void happened(const std::string& event, const Json& data);

  /// The end of a wait of `seconds` that begins in this turn; nothing: it has none.
  std::optional<Clock::time_point> after(std::optional<double> seconds) const;

  const ConsoleOptions options;
  Connection rank;
  RunView view;
  OrderBook book;
  EventRing ring;
  Waits waits;
  std::optional<Journal> journal;  ///< from rank 0's hello on
  std::map<std::string, std::pair<std::uint64_t, Json>>
      last;                ///< by event: how often so far, and the last one
  Clock::time_point now;   ///< of this turn
  bool following = false;  ///< rank 0 has been asked to tell everything as it happens
};

}  // namespace footplate::host
