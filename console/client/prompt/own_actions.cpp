#include "console/client/prompt/own_actions.h"

#include <algorithm>
#include <array>

namespace footplate {
namespace {

constexpr std::string_view kApplied = ", applied at step ";

/// What an event tells with more in it, once it is done.
bool has_event(std::string_view line) {
  constexpr std::array<std::string_view, 3> kActions{"ckpt.save", "eval.now", "run.note"};
  if (line.find(kApplied) == std::string_view::npos) return false;
  for (const auto& action : kActions)
    if (line.starts_with(action) && line.size() > action.size() && line.find_first_of("({") == action.size())
      return true;
  return false;
}

}  // namespace

void OwnActions::chunk_begins(const std::string& code) {
  pauses_ = code.find("run.pause") != std::string::npos || code.find("run.resume") != std::string::npos;
  confirmed_ = false;
  note_.clear();
  value_.clear();
}

std::string OwnActions::talk(std::string_view text) {
  std::string left;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    confirmed_ = confirmed_ || line.find(kApplied) != std::string_view::npos;
    if (!has_event(line)) left += std::string(line) + "\n";
    start = end + 1;
  }
  return left;
}

bool OwnActions::is_told(const EventData& data) {
  const auto* change = std::get_if<RunChange>(&data);
  if (change != nullptr)
    return pauses_ && (change->state == RunState::paused || change->state == RunState::running);
  const auto* note = std::get_if<Note>(&data);
  return note != nullptr && !value_.empty() && note->text == value_;
}

bool OwnActions::is_told(const std::string& value) const {
  const bool handle = value.find('\n') == std::string::npos && value.find(" (order ") != std::string::npos &&
                      value.ends_with(')');
  return (handle && confirmed_) || (!value.empty() && value == note_);
}

}  // namespace footplate
