#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "protocol/mutex.h"

namespace footplate {

/// What is worth telling somebody who isn't there.
struct Notice {
  std::string event;  ///< "end", "restart", "pause", "lost", "warning"
  std::string text;   ///< a line
  std::int64_t step = 0;
  std::optional<std::int64_t> code;  ///< of an end
  std::string kind = {};             ///< of a warning
};

/// footplate run --notify: a command of the shell for each notice, which has it in its environment
/// (FOOTPLATE_NOTIFY_EVENT, _KIND, _TEXT, _RUN, _DIRECTORY, _STEP, _CODE) and its text as stdin. On threads
/// of its own, at most half a minute each, then it is killed with all that it has started; what it does
/// changes nothing of the run. One after the other, but for one that takes more than two seconds: then the
/// next begins beside it.
class Notifier {
 public:
  /// `command` empty: nobody is told. `complain`: what went wrong; on the caller's thread, in tell() and
  /// wait().
  Notifier(std::string command, std::string run, std::filesystem::path directory,
           std::function<void(const std::string&)> complain);
  ~Notifier() { wait(); }
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  void tell(const Notice& notice);
  /// Until the last command has ended.
  void wait();

 private:
  /// One command.
  struct Telling {
    std::thread thread;
    std::shared_future<void> over;
  };
  void run(const Notice& notice);
  void join_those_over();
  void complain();

  const std::string command_, run_;
  const std::filesystem::path directory_;
  const std::function<void(const std::string&)> complain_;
  std::vector<Telling> tellings_;
  std::shared_future<void> last_;  ///< the newest one is over; not valid: there was none
  Mutex mutex_;
  std::vector<std::string> failures_ GUARDED_BY(mutex_);
};

}  // namespace footplate
