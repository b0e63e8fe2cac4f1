#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "protocol/result.h"

namespace footplate {

bool is_program(const std::filesystem::path& path);

/// The first of that name in PATH.
std::optional<std::filesystem::path> find_program(const std::string& name);

/// What a program answered that was asked.
struct ProgramAnswer {
  std::string text;     ///< what it wrote
  int code = 0;         ///< its exit code; -1: a signal ended it
  bool in_time = true;  ///< else it was killed, and `text` is what it had written by then
  int signal = 0;       ///< that ended it, and was not ours; 0: none
};

/// Starts `program` with `arguments`, `input` as its stdin, and waits for its end, at most so long. `heard`
/// is what is taken as its answer, STDOUT_FILENO or STDERR_FILENO; the other goes nowhere. Errors (failed):
/// it can't be started.
Result<ProgramAnswer> ask_program(const std::filesystem::path& program,
                                  const std::vector<std::string>& arguments, const std::string& input,
                                  int heard, std::chrono::seconds at_most);

}  // namespace footplate
