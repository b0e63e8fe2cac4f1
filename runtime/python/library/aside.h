#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace footplate {

/// Asks Python for a thread that must not wait for the GIL. One thread at a time asks.
class Aside {
 public:
  /// What `question` gives or throws, asked on a thread of its own. Nothing: there was no answer within
  /// `patience`, or the one before is still being asked. `question` then goes on: it holds what it needs.
  std::optional<std::string> ask(std::function<std::string()> question, std::chrono::milliseconds patience);

 private:
  const std::shared_ptr<std::atomic<bool>> busy_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace footplate
