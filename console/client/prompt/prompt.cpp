#include "console/client/prompt/prompt.h"

#include <algorithm>

namespace footplate {
namespace {

/// What a state is called where it isn't simply running.
std::string state_word(const std::optional<RunStatus>& status, LinkState link) {
  if (link == LinkState::lost) return " RECONNECTING";
  if (link == LinkState::silent) return " NO ANSWER";
  if (!status) return "";
  if (std::any_of(status->ranks.begin(), status->ranks.end(),
                  [](const RankStatus& rank) { return rank.stalled; }))
    return " STALLED";
  switch (status->state) {
    case RunState::starting:
      return " STARTING";
    case RunState::running:
      return "";
    case RunState::paused:
      return " PAUSED";
    case RunState::evaluating:
      return " EVALUATING";
    case RunState::saving:
      return " SAVING";
    case RunState::recovering:
      return " RECOVERING";
    case RunState::ending:
      return " ENDING";
    case RunState::ended:
      return " ENDED";
  }
  return "";
}

}  // namespace

std::string prompt_text(const std::string& run, const std::optional<RunStatus>& status, Role role,
                        LinkState link) {
  const std::string step = status ? ":" + std::to_string(status->step) : "";
  return run + step + state_word(status, link) +
         (role == Role::admin ? "" : " " + std::string(to_string(role))) + "> ";
}

}  // namespace footplate
