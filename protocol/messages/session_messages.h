#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "protocol/messages/link_messages.h"
#include "protocol/messages/order_report.h"

namespace footplate {

// What the console and a Lua process tell each other, one line each (docs/protocol.md, "The console and a
// session's Lua process"). Ids are the client's or the console's own, and come back as they are.

/// What a Lua process is for.
enum class SessionKind {
  session,  ///< the chunks of one client
  job,      ///< a job script, and the rules that it registers
  rules,    ///< the run's rules, from the source of the chunks that registered them
  check,    ///< footplate check --script: nothing is sent anywhere
};
template <>
struct EnumWords<SessionKind> {
  static constexpr std::array kAll{std::pair{SessionKind::session, std::string_view("session")},
                                   std::pair{SessionKind::job, std::string_view("job")},
                                   std::pair{SessionKind::rules, std::string_view("rules")},
                                   std::pair{SessionKind::check, std::string_view("check")}};
};

/// What a chunk may use. Bytes and seconds; nothing: the process's own default.
struct SessionLimits {
  std::optional<double> chunk_s;
  std::optional<double> idle_cpu_s;
  std::optional<double> memory_bytes;
  std::optional<double> output_bytes;
};

// --- the console says ---

struct SessionHello {
  Json schema = Json::object();
  Json settings = Json::object();
  RunIdentity run;
  std::string script;  ///< path of a job's script, and of footplate check --script's
  std::string session;
  std::string user;
  std::string role = "admin";
  SessionLimits limits;
  SessionKind kind = SessionKind::session;
  std::vector<std::string> arguments;  ///< a job's, after --
  bool resumed = false;                ///< a job that has run before in this run
};
struct EvalChunk {
  Json id;
  std::string code;
  std::string name = "chunk";
  double timeout_s = 30;  ///< for its orders
  bool asks = false;      ///< a person can be asked
};
struct RegisterChunk {
  Json id;
  std::int64_t chunk = 0;
  std::string code;
  std::string name = "chunk";
};
struct HandleRule {
  Json id;
  std::int64_t chunk = 0;  ///< 0: a job's
  std::int64_t index = 0;
  std::string name = "rule";
  std::string text;
  std::string source;
  double budget_ms = 2000;
  Json event = Json::object();          ///< what its function gets
  std::optional<std::int64_t> at_step;  ///< for its orders
  bool stop_when = false;
  bool of_metrics = false;  ///< the event is the latest metrics: m.loss is m["train/loss"]
};
struct InterruptChunk {};
/// To a request.
struct SessionAnswer {
  std::uint64_t id = 0;
  Result<Json> value = Json();
};
/// On the way to an answer: the order that is waited for is waiting.
struct SessionNote {
  std::uint64_t id = 0;
  OrderReport value;
};
using ToSession = std::variant<SessionHello, EvalChunk, RegisterChunk, HandleRule, InterruptChunk,
                               SettingsUpdate, SessionAnswer, SessionNote>;
Json to_json(const ToSession& message);
/// Errors (usage): an unknown type, a field of the wrong type.
Result<ToSession> to_session_from_json(const Json& json);

// --- the process says ---

/// What a script asks: an operation of docs/protocol.md, and its fields.
struct SessionRequest {
  std::uint64_t id = 0;
  std::string op;
  Json fields = Json::object();  ///< the whole line; each operation reads its own
};
enum class OutputStream {
  out,
  talk,
  progress,  ///< takes the place of the one before it; of a session's chunk alone
};
template <>
struct EnumWords<OutputStream> {
  static constexpr std::array kAll{std::pair{OutputStream::out, std::string_view("out")},
                                   std::pair{OutputStream::talk, std::string_view("talk")},
                                   std::pair{OutputStream::progress, std::string_view("progress")}};
};
struct ChunkOutput {
  Json id;
  std::string text;
  OutputStream stream = OutputStream::out;
};
/// How a chunk, a rule's function or a registration ended.
struct ChunkResult {
  Json id;
  std::string text;  ///< the rendered value
  Json value;
};
struct ChunkError {
  Json id;
  Error error;
  std::optional<int> line;  ///< of the chunk
  Json value;               ///< what a rule's function still tells: {"ran_ms"}
  bool lost = false;        ///< the process has ended; said by the console
};
struct ChunkWaiting {};
struct ChunkRunning {};
/// A rule's function begins.
struct HandlingRule {
  Json id;
};
using FromSession = std::variant<SessionRequest, ChunkOutput, ChunkResult, ChunkError, ChunkWaiting,
                                 ChunkRunning, HandlingRule>;
Json to_json(const FromSession& message);
/// Errors (usage): an unknown type, a field of the wrong type.
Result<FromSession> from_session_from_json(const Json& json);

}  // namespace footplate
