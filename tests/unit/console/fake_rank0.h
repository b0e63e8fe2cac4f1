#pragma once

#include <sys/types.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "protocol/messages/link_messages.h"
#include "protocol/settings.h"

namespace footplate::test {

/// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Rank 0 of a run of eight ranks as footplate-console sees it: starts a real console with a socketpair as
/// descriptor 3, applies each order at step 12041 (or its own), finishes each call at once.
class FakeRank0 {
 public:
  /// `arguments` come after --run-dir; `reports` go into the hello, and what `hello` has.
  FakeRank0(const std::filesystem::path& directory, const std::vector<std::string>& arguments = {},
            Json reports = Json::array(), const Json& hello = Json::object());
  ~FakeRank0();  ///< closes the socketpair; the console ends by itself

  pid_t console() const { return pid_; }
  const std::filesystem::path& socket() const { return socket_; }

  void send(const Json& message);
  void send(const RankZeroMessage& message) { send(to_json(message)); }
  void send_status(std::int64_t step);
  /// The first call of an order is done.
  void finish_call(std::uint64_t order);
  /// An order that hold_orders has kept back is applied after all.
  void apply_held(std::uint64_t order);

  /// Closes the socketpair and waits for the console; its exit code, or 256 where it had to be killed.
  int end();

  std::atomic<bool> hold_orders{false};  ///< accept them and say `waiting`, nothing more
  std::atomic<bool> refuse_orders{false};
  std::atomic<bool> hold_calls{false};      ///< apply orders, and end no call before finish_call()
  std::atomic<bool> deaf{false};            ///< hear nothing, as when stopped
  std::atomic<int> unheard{0};              ///< orders that came meanwhile
  std::atomic<std::int64_t> first_step{0};  ///< orders for an earlier step apply at this one
  std::vector<Order> orders() const;
  std::vector<Json> lines(
      const std::string& type) const;  ///< that the console has sent: publish, ranks, sync, release, withdraw

  /// An event, as rank 0 sends it; `hold` != 0: training waits.
  void send_event(const std::string& topic, const Json& data, std::uint64_t hold = 0);

 private:
  void serve();
  void answer(const Json& line);
  void take(const SubmitOrder& submit);
  void apply(Order order, const std::string& ref);

  std::filesystem::path socket_;
  std::uint64_t first_id_;  ///< of an order: they go on where a console is replaced
  int fd_ = -1;
  pid_t pid_ = -1;
  std::mutex send_mutex_;     ///< whole lines
  mutable std::mutex mutex_;  ///< guards orders_ and lines_
  std::vector<Json> lines_;
  std::vector<Order> orders_;
  Settings settings_;  ///< of the serving thread
  std::thread server_;
};

/// Processes whose parent is `pid`, by /proc.
std::vector<pid_t> children_of(pid_t pid);

/// Waits until `condition` holds, at most `seconds`; whether it does.
template <class Condition>
bool eventually(Condition condition, double seconds = 20) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace footplate::test
