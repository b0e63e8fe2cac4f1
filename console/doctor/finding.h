#pragma once

#include <cstdint>
#include <string>

#include "protocol/json.h"

namespace footplate {

/// What came of one look at the machine.
enum class Verdict {
  good,
  to_mend,   ///< runs would fail, or be slow, or be lost
  left_out,  ///< not looked at, and why
};

/// "good", "to mend", "left out".
std::string_view to_string(Verdict verdict);

/// One line of `footplate doctor`.
struct Check {
  std::string name;  ///< "shared memory"
  Verdict verdict = Verdict::good;
  std::string found = {};  ///< for people; of one that was left out, why
  std::string mend = {};   ///< the command or setting that mends it; empty where there is nothing to mend
  Json values = Json::object();  ///< what was measured, for programs
};

/// The same check with something to mend, and how; with what was found in place of what it says.
Check to_mend(Check check, std::string how);
Check to_mend(Check check, std::string found, std::string how);

Json to_json(const Check& check);

/// The lines of a check for people, each with a newline: the verdict, the name, what was found; beneath, the
/// mend.
std::string to_lines(const Check& check);

/// "4 M elements", "250 k elements", "100 elements": four digits at most.
std::string elements_text(std::int64_t elements);

/// "21.9 GiB": a number of bytes for people, binary units, three digits at most.
std::string bytes_text(double bytes);

}  // namespace footplate
