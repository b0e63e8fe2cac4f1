#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "protocol/json.h"
#include "protocol/messages/enum_words.h"

namespace footplate {

/// When a rule is due.
enum class RuleKind { every, after, at, on, stop_when };
template <>
struct EnumWords<RuleKind> {
  static constexpr std::array kAll{std::pair{RuleKind::every, std::string_view("every")},
                                   std::pair{RuleKind::after, std::string_view("after")},
                                   std::pair{RuleKind::at, std::string_view("at")},
                                   std::pair{RuleKind::on, std::string_view("on")},
                                   std::pair{RuleKind::stop_when, std::string_view("stop_when")}};
};

/// What on() and run.wait{ event = … } know of.
enum class RuleEvent { start, log, eval, ckpt, warn, order, stop };
template <>
struct EnumWords<RuleEvent> {
  static constexpr std::array kAll{std::pair{RuleEvent::start, std::string_view("start")},
                                   std::pair{RuleEvent::log, std::string_view("log")},
                                   std::pair{RuleEvent::eval, std::string_view("eval")},
                                   std::pair{RuleEvent::ckpt, std::string_view("ckpt")},
                                   std::pair{RuleEvent::warn, std::string_view("warn")},
                                   std::pair{RuleEvent::order, std::string_view("order")},
                                   std::pair{RuleEvent::stop, std::string_view("stop")}};
};

/// What an error of a rule does to the run.
enum class OnError { warn, pause, stop };
template <>
struct EnumWords<OnError> {
  static constexpr std::array kAll{std::pair{OnError::warn, std::string_view("warn")},
                                   std::pair{OnError::pause, std::string_view("pause")},
                                   std::pair{OnError::stop, std::string_view("stop")}};
};

/// A rule as its script wrote it.
struct RuleSpec {
  RuleKind kind = RuleKind::every;
  std::optional<std::int64_t> steps;  ///< every, after
  std::optional<double> seconds;      ///< after
  std::optional<std::int64_t> step;   ///< at
  std::optional<RuleEvent> event;     ///< on
  double budget_ms = 0;               ///< its function may run so long
  std::optional<OnError> on_error;    ///< nothing: what the run does with errors of scripts
  bool sync = false;                  ///< training waits for it
  std::string text;                   ///< "every(1000, …)"
  std::string source;                 ///< the lines of its function
  int line = 0;                       ///< where it begins in its chunk
  std::int64_t index = 0;             ///< its place among the rules of its chunk
  bool dropped = false;               ///< off() came before the chunk's end: it only holds its place
};
Json to_json(const RuleSpec& spec);
/// Errors (usage): a field of the wrong type, a kind without what it needs (every without steps, …).
Result<void> read_json(const Json& json, RuleSpec& spec);

enum class RuleState { on, done, off };
template <>
struct EnumWords<RuleState> {
  static constexpr std::array kAll{std::pair{RuleState::on, std::string_view("on")},
                                   std::pair{RuleState::done, std::string_view("done")},
                                   std::pair{RuleState::off, std::string_view("off")}};
};

/// What rules() lists.
struct RuleStatus {
  std::int64_t rule = 0;  ///< number
  std::string text;
  RuleState state = RuleState::on;
  std::uint64_t runs = 0;
  std::string user;
  RuleKind kind = RuleKind::every;
  std::string why;  ///< it is off
  bool sync = false;
  double budget_ms = 0;
  int line = 0;
  std::string job;  ///< whose script registered it; empty: a session's chunk
};
Json to_json(const RuleStatus& rule);
Result<void> read_json(const Json& json, RuleStatus& rule);

/// `rules`: the script has ended and left some.
enum class JobState { running, rules, done, failed, stopped };
template <>
struct EnumWords<JobState> {
  static constexpr std::array kAll{std::pair{JobState::running, std::string_view("running")},
                                   std::pair{JobState::rules, std::string_view("rules")},
                                   std::pair{JobState::done, std::string_view("done")},
                                   std::pair{JobState::failed, std::string_view("failed")},
                                   std::pair{JobState::stopped, std::string_view("stopped")}};
};

/// What jobs() lists.
struct JobStatus {
  std::string job;   ///< name
  std::string path;  ///< of its script, as given
  JobState state = JobState::running;
  bool resumed = false;  ///< it has run before in this run
  std::string error;
};
Json to_json(const JobStatus& job);
Result<void> read_json(const Json& json, JobStatus& job);

}  // namespace footplate
