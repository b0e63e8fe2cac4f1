#include "console/client/link/console_lines_json.h"

#include "protocol/json_fields.h"
#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<ChunkQuestion> {
  static void list(auto& field, auto& question) {
    field("question", question.question);
    field("text", question.text);
  }
};

template <>
struct FieldsOf<EvalAnswer> {
  static void list(auto& field, auto& answer) {
    field("text", answer.text);
    field("value", answer.value);
  }
};

template <>
struct FieldsOf<AttachAnswer::Other> {
  static void list(auto& field, auto& other) {
    field("session", other.session);
    field("user", other.user);
    field("from", other.from);
  }
};

template <>
struct FieldsOf<AttachAnswer> {
  static void list(auto& field, auto& answer) { field("others", answer.others); }
};

template <>
struct FieldsOf<HelpAnswer> {
  static void list(auto& field, auto& answer) { field("text", answer.text); }
};

template <>
struct FieldsOf<CompleteAnswer::Item> {
  static void list(auto& field, auto& item) {
    field("text", item.text);
    field("note", item.note);
  }
};

template <>
struct FieldsOf<CompleteAnswer> {
  static void list(auto& field, auto& answer) {
    field("start", answer.start);
    field("items", answer.items);
    field("in_text", answer.in_text);
  }
};

Result<void> read_json(const Json& json, ConsoleHello& hello) {
  if (!json.is_object()) return fields::wrong("an object");
  FieldReader field(json);
  field("product", hello.product);
  field("protocol", hello.protocol);
  field("session", hello.session);
  if (auto read = field.take(); !read) return read;
  hello.role = role_from_string(text_of(json, "role")).value_or(Role::admin);
  return {};
}
Result<void> read_json(const Json& json, EvalAnswer& answer) {
  return read_fields(json, answer);
}
Result<void> read_json(const Json& json, AttachAnswer& answer) {
  return read_fields(json, answer);
}
Result<void> read_json(const Json& json, RoleAnswer& answer) {
  return role_from_string(text_of(json, "role")).map([&](Role role) { answer.role = role; });
}
Result<void> read_json(const Json& json, HelpAnswer& answer) {
  return read_fields(json, answer);
}
Result<void> read_json(const Json& json, CompleteAnswer& answer) {
  return read_fields(json, answer);
}

Result<void> read_json(const Json& json, OrdersAnswer& answer) {
  if (!json.is_array()) return fields::wrong("a list");
  for (const Json& one : json)
    if (OrderReport report; read_json(one, report)) answer.reports.push_back(std::move(report));
  return {};
}

Json to_json(const ClientRequest& request, int id) {
  Json json = request.fields;
  json["id"] = id;
  json["op"] = request.op;
  return json;
}

namespace {

Json field_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? Json() : *found;
}

ConsoleLine answer_of(const Json& json) {
  return RequestAnswer{field_of(json, "id"), field_of(json, "value")};
}

ConsoleLine error_of(const Json& json) {
  RequestAnswer answer{field_of(json, "id"), Json()};
  Error error = error_from_json(field_of(json, "error"));
  if (error.kind == ErrorKind::lost) error.kind = ErrorKind::failed;  // it is of ranks among each other
  answer.value = tl::unexpected(std::move(error));
  return answer;
}

ConsoleLine output_of(const Json& json) {
  auto read = from_session_from_json(json);
  if (auto* output = read ? std::get_if<ChunkOutput>(&*read) : nullptr) return std::move(*output);
  return std::monostate{};
}

ConsoleLine question_of(const Json& json) {
  ChunkQuestion question;
  if (read_fields(json, question)) return question;
  return std::monostate{};
}

ConsoleLine event_of(const Json& json) {
  Event event;
  if (read_json(json, event)) return event;
  const auto lost = integer_of(json, "lost", 0);
  return UnknownEvent{text_of(json, "topic"), text_of(field_of(json, "data"), "text"),
                      lost > 0 ? static_cast<std::uint64_t>(lost) : 0};
}

struct LineType {
  std::string_view type;
  ConsoleLine (*read)(const Json& json);
};
constexpr std::array kLineTypes{LineType{"result", answer_of}, LineType{"error", error_of},
                                LineType{"output", output_of}, LineType{"question", question_of},
                                LineType{"event", event_of}};

}  // namespace

ConsoleLine console_line_from_json(const Json& json) {
  const std::string type = text_of(json, "type");
  for (const LineType& known : kLineTypes)
    if (known.type == type) return known.read(json);
  return std::monostate{};
}

}  // namespace footplate
