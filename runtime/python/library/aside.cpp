#include "runtime/python/library/aside.h"

#include <future>
#include <thread>
#include <utility>

namespace footplate {

std::optional<std::string> Aside::ask(std::function<std::string()> question,
                                      std::chrono::milliseconds patience) {
  if (busy_->exchange(true)) return std::nullopt;
  std::packaged_task<std::string()> task(std::move(question));
  auto answer = task.get_future();
  std::thread([task = std::move(task), busy = busy_]() mutable {
    task();
    *busy = false;
  }).detach();
  if (answer.wait_for(patience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

}  // namespace footplate
