#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "protocol/result.h"

namespace footplate {

/// A rank's log file: one line per message, "2026-11-20T19:30:00.123Z info text". Whoever logs never
/// waits for the disk: lines go through a bounded queue to a thread; when it is full the oldest are lost
/// and counted. Any thread. (The library behind it, spdlog, stays in the .cpp: its headers and LibTorch's
/// don't mix.)
class Log {
 public:
  /// Appends to `file`. `level` is a value of log.level. Error (failed): the file can't be opened.
  static Result<std::unique_ptr<Log>> open(const std::filesystem::path& file, std::string_view level);
  ~Log();  ///< writes what is queued

  void trace(const std::string& text);
  void debug(const std::string& text);
  void info(const std::string& text);
  void warn(const std::string& text);
  void error(const std::string& text);

  /// One of trace, debug, info, warn, error; anything else changes nothing.
  void set_level(std::string_view level);

  /// Waits until what was logged before is in the file, `at_most` that long: the disk may hang.
  void flush(std::chrono::milliseconds at_most);

  std::uint64_t dropped() const;       ///< lines that found the queue full
  std::uint64_t write_errors() const;  ///< lines that the disk refused

 private:
  struct State;
  explicit Log(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace footplate
