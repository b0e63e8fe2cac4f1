#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "protocol/messages/run_result.h"

namespace footplate {

/// Whether a start that has failed is followed by another one, and after which pause. One thread.
class RestartPolicy {
 public:
  /// `most`: restarts after failures; `asked`: by --restarts, whatever the failures are, else only what may
  /// go well this time.
  RestartPolicy(std::string run, std::filesystem::path directory, int most, bool asked)
      : run_(std::move(run)), directory_(std::move(directory)), most_(most), asked_(asked) {}

  /// `start` has ended with `result`, having done a step or not. Tell it once, before the others.
  void ended(int start, const RunResult& result, bool has_done_a_step);

  /// A start has done a step: those of the run can.
  bool has_trained() const { return has_trained_; }

  struct Decision {
    bool again = false;
    bool counts = true;   ///< as one of the restarts
    std::string why_not;  ///< for people; empty where nobody would wonder
  };
  /// Whether the start that was told last is started again. A start that did no step since a host was lost
  /// doesn't count, a few times in a row: `host_was_lost`.
  Decision decide(bool host_was_lost);

  int restarts() const { return restarts_; }  ///< that count
  int most() const { return most_; }

  /// Before the next start: 1 s, and twice as long for each further failure that brought no progress, up to
  /// a minute.
  std::chrono::seconds pause() const;

 private:
  const std::string run_;
  const std::filesystem::path directory_;
  const int most_;
  const bool asked_;
  int restarts_ = 0;
  int without_a_host_ = 0;  ///< starts in a row that don't count
  int in_vain_ = 0;         ///< failures in a row that brought no progress
  bool has_trained_ = false;
  bool did_a_step_ = false;                ///< the newest start
  int start_ = 0;                          ///< its number
  RunResult result_;                       ///< its result
  std::optional<std::int64_t> failed_at_;  ///< the step of the last failure
};

}  // namespace footplate
