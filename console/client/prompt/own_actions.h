#pragma once

#include <string>
#include <string_view>

#include "protocol/messages/event.h"

namespace footplate {

/// Keeps one action of this session to one line: what happens is told by a confirmation, by an event for
/// everybody and by the chunk's value, and two of them are too many. For a person at a prompt. One thread.
class OwnActions {
 public:
  void chunk_begins(const std::string& code);

  /// What is left of what footplate says of the running chunk.
  std::string talk(std::string_view text);

  /// Whether an event says what the confirmation of this session's run.pause() or run.resume() says.
  bool is_told(const EventData& data);

  /// Whether the chunk's value says no more: "ckpt.save running (order 4)", and the line of a trial, which is
  /// a note as well.
  bool is_told(const std::string& value) const;

  /// A note or a value was shown.
  void shown_note(const std::string& text) { note_ = text; }
  void shown_value(const std::string& text) { value_ = text; }

 private:
  bool pauses_ = false;     ///< the last chunk pauses the run or lets it go on
  bool confirmed_ = false;  ///< an order of the last chunk
  std::string note_;
  std::string value_;
};

}  // namespace footplate
