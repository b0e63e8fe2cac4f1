#include "console/launch/supervise/notifier.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "console/client/render/text.h"
#include "console/launch/start/ask_program.h"
#include "protocol/mutex.h"

namespace footplate {
namespace {

constexpr std::chrono::seconds kTakes{30};
constexpr std::chrono::seconds kInOrder{2};
constexpr std::chrono::seconds kKilled{2};  ///< and then it is gone
constexpr int kKilledCode = 128 + 9;        ///< of timeout, which has killed its group and so itself

}  // namespace

Notifier::Notifier(std::string command, std::string run, std::filesystem::path directory,
                   std::function<void(const std::string&)> complain)
    : command_(std::move(command)),
      run_(std::move(run)),
      directory_(std::move(directory)),
      complain_(std::move(complain)) {}

void Notifier::tell(const Notice& notice) {
  if (command_.empty()) return;
  join_those_over();
  std::promise<void> over;
  const auto before = std::exchange(last_, over.get_future().share());
  tellings_.push_back({std::thread([this, notice, before, over = std::move(over)]() mutable {
                         if (before.valid()) before.wait_for(kInOrder);
                         run(notice);
                         over.set_value();
                       }),
                       last_});
  complain();
}

/// A run may last for weeks, with a notice now and then.
void Notifier::join_those_over() {
  for (Telling& telling : tellings_)
    if (telling.over.wait_for(std::chrono::seconds(0)) == std::future_status::ready) telling.thread.join();
  std::erase_if(tellings_, [](const Telling& telling) { return !telling.thread.joinable(); });
}

void Notifier::wait() {
  for (Telling& telling : std::exchange(tellings_, {})) telling.thread.join();
  complain();
}

void Notifier::complain() {
  std::vector<std::string> failures;
  {
    const MutexLock lock(mutex_);
    failures.swap(failures_);
  }
  for (const std::string& failure : failures) complain_(failure);
}

void Notifier::run(const Notice& notice) {
  const auto variable = [](const char* name, const std::string& value) {
    return "FOOTPLATE_NOTIFY_" + std::string(name) + "=" + value;
  };
  // timeout ends all that the command has started, too.
  const auto answer =
      ask_program("/usr/bin/env",
                  {variable("EVENT", notice.event), variable("KIND", notice.kind),
                   variable("TEXT", notice.text), variable("RUN", run_),
                   variable("DIRECTORY", directory_.string()), variable("STEP", std::to_string(notice.step)),
                   variable("CODE", notice.code ? std::to_string(*notice.code) : ""), "timeout",
                   "--signal=KILL", std::to_string(kTakes.count()), "/bin/sh", "-c", command_},
                  notice.text + "\n", STDERR_FILENO, kTakes + kKilled);
  std::string failure;
  if (!answer)
    failure = answer.error().message;
  else if (!answer->in_time || answer->code == kKilledCode || answer->code == -1)
    failure = "it was killed, as it is after " + std::to_string(kTakes.count()) + " s";
  else if (answer->code != 0)
    failure = "it ended with code " + std::to_string(answer->code) +
              (answer->text.empty() ? "" : ": " + printable(answer->text.substr(0, answer->text.find('\n'))));
  if (failure.empty()) return;
  const MutexLock lock(mutex_);
  failures_.push_back("--notify, told of " + notice.event + ": " + failure);
}

}  // namespace footplate
