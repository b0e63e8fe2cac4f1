#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/stacks/symbols.h"

namespace footplate {

/// How long names are waited for.
inline constexpr std::chrono::milliseconds kNamePatience{500};

/// A thread that names code addresses for one that may not wait: the files that have the symbols may be on a
/// disk that doesn't answer any more. It is there from the start, as who starts a thread may wait for a lock
/// of the dynamic loader.
class SymbolThread {
 public:
  explicit SymbolThread(OpenFile open = open_file);
  /// Ends the thread, or leaves it behind where it is at work.
  ~SymbolThread();
  SymbolThread(const SymbolThread&) = delete;
  SymbolThread& operator=(const SymbolThread&) = delete;

  /// What a person reads of each, in the same order (names_in). What has no name after `patience` is
  /// "library+offset", and so is everything, at once, while the thread is at an earlier question. Any thread.
  std::vector<std::string> name(const std::vector<std::uintptr_t>& addresses,
                                std::chrono::milliseconds patience = kNamePatience);

 private:
  struct Shared;
  static void serve(Shared& shared);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace footplate
