#pragma once

#include <array>
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
#include "protocol/messages/link_messages.h"
#include "protocol/schema.h"

namespace footplate::host {

/// What run.wait{ event = … } knows of.
enum class AwaitedEvent { log, eval, ckpt, warn, order, nccl, profile, stop };

}  // namespace footplate::host

template <>
struct footplate::EnumWords<footplate::host::AwaitedEvent> {
  using Event = footplate::host::AwaitedEvent;
  static constexpr std::array kAll{std::pair{Event::log, std::string_view("log")},
                                   std::pair{Event::eval, std::string_view("eval")},
                                   std::pair{Event::ckpt, std::string_view("ckpt")},
                                   std::pair{Event::warn, std::string_view("warn")},
                                   std::pair{Event::order, std::string_view("order")},
                                   std::pair{Event::nccl, std::string_view("nccl")},
                                   std::pair{Event::profile, std::string_view("profile")},
                                   std::pair{Event::stop, std::string_view("stop")}};
};

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
  void to_rank(const ConsoleMessage& message);

  /// An event of the console's own, for whoever has subscribed to its topic.
  void publish(EventData data);

  /// Counts an event that scripts wait for (run.wait), and keeps what they get of the last one.
  void happened(AwaitedEvent event, Json data);

  /// The end of a wait of `seconds` that begins in this turn; nothing: it has none.
  std::optional<Clock::time_point> after(std::optional<double> seconds) const;

  /// How often an event has happened so far, and what scripts get of the last one.
  struct Happened {
    std::uint64_t count = 0;
    Json last;
  };

  const ConsoleOptions options;
  Connection rank;
  RunView view;
  OrderBook book;
  EventRing ring;
  Waits waits;
  std::optional<Journal> journal;  ///< from rank 0's hello on
  std::map<AwaitedEvent, Happened> events;
  Clock::time_point now;   ///< of this turn
  bool following = false;  ///< rank 0 has been asked to tell everything as it happens
};

}  // namespace footplate::host
