#include "console/client/prompt/prompt.h"

#include <array>
#include <utility>

#include "console/client/runs/run_record.h"

namespace footplate {
namespace {

/// What a state is called where it isn't simply running.
std::string state_word(const Json& status, bool connected) {
  constexpr std::array<std::pair<const char*, const char*>, 7> kWords{{{"starting", " STARTING"},
                                                                       {"paused", " PAUSED"},
                                                                       {"evaluating", " EVALUATING"},
                                                                       {"saving", " SAVING"},
                                                                       {"recovering", " RECOVERING"},
                                                                       {"ending", " ENDING"},
                                                                       {"ended", " ENDED"}}};
  if (!connected) return " RECONNECTING";
  const auto ranks = status.find("ranks");
  if (ranks != status.end() && ranks->is_array())
    for (const auto& rank : *ranks)
      if (flag_of(rank, "stalled")) return " STALLED";
  const std::string state = text_of(status, "state");
  for (const auto& [name, word] : kWords)
    if (state == name) return word;
  return "";
}

}  // namespace

std::string prompt_text(const std::string& run, const Json& status, const std::string& role, bool connected) {
  const std::string step = status.contains("step") ? ":" + std::to_string(integer_of(status, "step", 0)) : "";
  return run + step + state_word(status, connected) + (role.empty() || role == "admin" ? "" : " " + role) +
         "> ";
}

}  // namespace footplate
