#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "protocol/messages/event.h"

namespace footplate {

// Events with what most of them have; the rest is set one by one.

inline Warning warning_of(WarningKind kind, std::string text) {
  Warning warning;
  warning.kind = kind;
  warning.text = std::move(text);
  return warning;
}

inline Warning warning_at(WarningKind kind, std::int64_t step, std::string text) {
  Warning warning = warning_of(kind, std::move(text));
  warning.step = step;
  return warning;
}

inline RunChange run_change(RunState state, std::optional<std::int64_t> step = {}) {
  RunChange change;
  change.state = state;
  change.step = step;
  return change;
}

inline RankChange change_of(RankChangeKind state, std::string text) {
  RankChange change;
  change.state = state;
  change.text = std::move(text);
  return change;
}

inline RankChange change_of(int rank, RankChangeKind state, std::string text) {
  RankChange change = change_of(state, std::move(text));
  change.rank = rank;
  return change;
}

}  // namespace footplate
