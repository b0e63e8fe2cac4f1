#include "protocol/messages/session_messages.h"

#include "protocol/messages/fields.h"
#include "protocol/messages/typed_lines.h"

namespace footplate {

template <>
struct FieldsOf<SessionLimits> {
  static void list(auto& field, auto& limits) {
    field("chunk_s", limits.chunk_s);
    field("idle_cpu_s", limits.idle_cpu_s);
    field("memory_bytes", limits.memory_bytes);
    field("output_bytes", limits.output_bytes);
  }
};

template <>
struct FieldsOf<SessionHello> {
  static void list(auto& field, auto& hello) {
    field("schema", hello.schema);
    field("settings", hello.settings);
    field("run", hello.run);
    field.unless_empty("script", hello.script);
    field("session", hello.session);
    field("user", hello.user);
    field("role", hello.role);
    field("limits", hello.limits);
    field("kind", hello.kind);
    field.unless_empty("arguments", hello.arguments);
    field.unless_empty("resumed", hello.resumed);
  }
};

template <>
struct FieldsOf<EvalChunk> {
  static void list(auto& field, auto& eval) {
    field("id", eval.id);
    field("code", eval.code);
    field("name", eval.name);
    field("timeout_s", eval.timeout_s);
    field("asks", eval.asks);
  }
};

template <>
struct FieldsOf<RegisterChunk> {
  static void list(auto& field, auto& chunk) {
    field("id", chunk.id);
    field("chunk", chunk.chunk);
    field("code", chunk.code);
    field("name", chunk.name);
  }
};

template <>
struct FieldsOf<HandleRule> {
  static void list(auto& field, auto& handle) {
    field("id", handle.id);
    field("chunk", handle.chunk);
    field("index", handle.index);
    field("name", handle.name);
    field("text", handle.text);
    field("source", handle.source);
    field("budget_ms", handle.budget_ms);
    field("event", handle.event);
    field("at_step", handle.at_step);
    field.unless_empty("stop_when", handle.stop_when);
    field.unless_empty("of_metrics", handle.of_metrics);
  }
};

template <>
struct FieldsOf<SessionNote> {
  static void list(auto& field, auto& note) {
    field("id", note.id);
    field("value", note.value);
  }
};

template <>
struct FieldsOf<ChunkOutput> {
  static void list(auto& field, auto& output) {
    field("id", output.id);
    field("text", output.text);
    field("stream", output.stream);
  }
};

template <>
struct FieldsOf<HandlingRule> {
  static void list(auto& field, auto& handling) { field("id", handling.id); }
};

template <>
struct TypeWord<SessionHello> {
  static constexpr const char* kWord = "hello";
};
template <>
struct TypeWord<EvalChunk> {
  static constexpr const char* kWord = "eval";
};
template <>
struct TypeWord<RegisterChunk> {
  static constexpr const char* kWord = "register";
};
template <>
struct TypeWord<HandleRule> {
  static constexpr const char* kWord = "handle";
};
template <>
struct TypeWord<SessionNote> {
  static constexpr const char* kWord = "note";
};
template <>
struct TypeWord<ChunkOutput> {
  static constexpr const char* kWord = "output";
};
template <>
struct TypeWord<HandlingRule> {
  static constexpr const char* kWord = "handling";
};

namespace {

template <class T>
Json session_line(const T& message) {
  return typed_line(message);
}
Json session_line(const SettingsUpdate& update) {
  return to_json(RankZeroMessage(update));
}
Json session_line(const InterruptChunk& /*interrupt*/) {
  return {{"type", "interrupt"}};
}
Json session_line(const SessionAnswer& answer) {
  Json json = {{"type", "answer"}, {"id", answer.id}};
  if (answer.value)
    json["value"] = *answer.value;
  else
    json["error"] = to_json(answer.value.error());
  return json;
}
Json session_line(const SessionRequest& request) {
  Json json = request.fields;
  json["type"] = "request";
  json["id"] = request.id;
  json["op"] = request.op;
  return json;
}
Json session_line(const ChunkResult& result) {
  return {{"type", "result"}, {"id", result.id}, {"value", {{"text", result.text}, {"value", result.value}}}};
}
Json session_line(const ChunkError& ended) {
  Json error = to_json(ended.error);
  if (ended.line) error["line"] = *ended.line;
  Json json = {{"type", "error"}, {"id", ended.id}, {"error", std::move(error)}};
  if (!ended.value.is_null()) json["value"] = ended.value;
  if (ended.lost) json["lost"] = true;
  return json;
}
Json session_line(const ChunkWaiting& /*waiting*/) {
  return {{"type", "waiting"}};
}
Json session_line(const ChunkRunning& /*running*/) {
  return {{"type", "running"}};
}

Result<ToSession> read_answer(const Json& json) {
  SessionAnswer answer;
  Json value;
  Json error;
  FieldReader field(json);
  field("id", answer.id);
  field("value", value);
  field("error", error);
  if (auto read = field.take(); !read) return tl::unexpected(read.error());
  if (error.is_null())
    answer.value = std::move(value);
  else
    answer.value = tl::unexpected(error_from_json(error));
  return ToSession(std::move(answer));
}

Result<FromSession> read_request(const Json& json) {
  SessionRequest request;
  FieldReader field(json);
  field("id", request.id);
  field("op", request.op);
  if (auto read = field.take(); !read) return tl::unexpected(read.error());
  request.fields = json;
  return FromSession(std::move(request));
}

Result<FromSession> read_result(const Json& json) {
  ChunkResult result;
  Json rendered = Json::object();
  FieldReader outer(json);
  outer("id", result.id);
  outer("value", rendered);
  if (auto read = outer.take(); !read) return tl::unexpected(read.error());
  if (!rendered.is_object()) return tl::unexpected(fields::wrong("an object").error());
  FieldReader inner(rendered);
  inner("text", result.text);
  inner("value", result.value);
  if (auto read = inner.take(); !read) return tl::unexpected(read.error());
  return FromSession(std::move(result));
}

Result<FromSession> read_error(const Json& json) {
  ChunkError ended;
  Json error = Json::object();
  FieldReader outer(json);
  outer("id", ended.id);
  outer("value", ended.value);
  outer("lost", ended.lost);
  outer("error", error);
  if (auto read = outer.take(); !read) return tl::unexpected(read.error());
  ended.error = error_from_json(error);
  if (error.is_object()) {
    FieldReader inner(error);
    inner("line", ended.line);
    if (auto read = inner.take(); !read) return tl::unexpected(read.error());
  }
  return FromSession(std::move(ended));
}

constexpr std::array kToSession{
    LineReader<ToSession>{"hello", read_line<ToSession, SessionHello>},
    LineReader<ToSession>{"eval", read_line<ToSession, EvalChunk>},
    LineReader<ToSession>{"register", read_line<ToSession, RegisterChunk>},
    LineReader<ToSession>{"handle", read_line<ToSession, HandleRule>},
    LineReader<ToSession>{"interrupt", [](const Json&) { return Result<ToSession>(InterruptChunk{}); }},
    LineReader<ToSession>{"settings", read_line<ToSession, SettingsUpdate>},
    LineReader<ToSession>{"answer", read_answer},
    LineReader<ToSession>{"note", read_line<ToSession, SessionNote>}};

constexpr std::array kFromSession{
    LineReader<FromSession>{"request", read_request},
    LineReader<FromSession>{"output", read_line<FromSession, ChunkOutput>},
    LineReader<FromSession>{"result", read_result},
    LineReader<FromSession>{"error", read_error},
    LineReader<FromSession>{"waiting", [](const Json&) { return Result<FromSession>(ChunkWaiting{}); }},
    LineReader<FromSession>{"running", [](const Json&) { return Result<FromSession>(ChunkRunning{}); }},
    LineReader<FromSession>{"handling", read_line<FromSession, HandlingRule>}};

}  // namespace

Json to_json(const ToSession& message) {
  return std::visit([](const auto& one) { return session_line(one); }, message);
}
Result<ToSession> to_session_from_json(const Json& json) {
  return read_by_type(kToSession, json);
}

Json to_json(const FromSession& message) {
  return std::visit([](const auto& one) { return session_line(one); }, message);
}
Result<FromSession> from_session_from_json(const Json& json) {
  return read_by_type(kFromSession, json);
}

}  // namespace footplate
