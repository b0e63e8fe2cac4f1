#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "protocol/order.h"
#include "protocol/schema.h"

namespace footplate {

/// What an order did with a setting or an action that the task doesn't declare any more: it is left out of
/// the order.
struct GoneChange {
  std::uint64_t order = 0;  ///< its id; 0: it was given to a start
  std::int64_t step = 0;    ///< at which it applied
  std::string name;
  std::optional<Json> value;  ///< of a setting; nothing: the action was called
};

/// What one start of a run added to journal.lua: its applied orders, in the order they applied. Each has the
/// id, user, session and source that its comments tell, and in `at_step` the step at which it applied.
struct JournalPart {
  std::string started;  ///< as in starts.jsonl's `time`
  std::vector<Order> orders;
  std::vector<GoneChange> gone = {};
};

/// Reads a journal (console/host/run/journal.h writes it) by running it: the file is a job script of at()
/// calls, here with an at() that records. Values are checked against `schema`. A last line that a crash cut
/// short is left out, and what the task has lost since. No file: no parts. Errors (usage): can't be read, not
/// a journal, a name or value that the schema doesn't have; with the line.
Result<std::vector<JournalPart>> read_journal(const std::filesystem::path& path, const Schema& schema);

/// The same for a text already in memory; `shown_as` is its name in messages.
Result<std::vector<JournalPart>> read_journal_text(std::string text, const std::string& shown_as,
                                                   const Schema& schema);

}  // namespace footplate
