#include "protocol/messages/link_messages.h"

#include <array>
#include <utility>

#include "protocol/messages/fields.h"
#include "protocol/messages/typed_lines.h"
#include "protocol/settings.h"

namespace footplate {

template <>
struct FieldsOf<RunIdentity> {
  static void list(auto& field, auto& run) {
    field("name", run.name);
    field("id", run.id);
    field("directory", run.directory);
    field("socket", run.socket);
    field("host", run.host);
    field("user", run.user);
    field("started", run.started);
    field("branch", run.branch);
    field("left", run.left);
    field("began", run.began);
    field("world_size", run.world_size);
  }
};

template <>
struct FieldsOf<SettingNow> {
  static void list(auto& field, auto& setting) {
    field("value", setting.value);
    field("source", setting.source);
  }
};

template <>
struct FieldsOf<RankZeroHello> {
  static void list(auto& field, auto& hello) {
    field("protocol", hello.protocol);
    field("run", hello.run);
    field("schema", hello.schema);
    field("settings", hello.settings);
    field("at_start", hello.at_start);
    field("status", hello.status);
    field("reports", hello.reports);
    field("store", hello.store);
    field("events", hello.events);
  }
};

template <>
struct FieldsOf<StatusUpdate> {
  static void list(auto& field, auto& update) { field("status", update.status); }
};

template <>
struct FieldsOf<SettingsUpdate> {
  static void list(auto& field, auto& update) { field("settings", update.settings); }
};

template <>
struct FieldsOf<RunEnd> {
  static void list(auto& field, auto& end) { field("result", end.result); }
};

template <>
struct FieldsOf<WithdrawOrder> {
  static void list(auto& field, auto& withdraw) {
    field("id", withdraw.id);
    field.unless_empty("ref", withdraw.ref);
  }
};

template <>
struct FieldsOf<CancelCall> {
  static void list(auto& field, auto& cancel) {
    field("order", cancel.order);
    field("call", cancel.call);
  }
};

template <>
struct FieldsOf<AskRanks> {
  static void list(auto& field, auto& ask) {
    field("query", ask.query);
    field("rank", ask.rank);
  }
};

template <>
struct FieldsOf<RanksAnswer> {
  static void list(auto& field, auto& answer) {
    field("query", answer.query);
    field("rank", answer.rank);
    field("report", answer.report);
  }
};

template <>
struct FieldsOf<DropRank> {
  static void list(auto& field, auto& drop) {
    field("rank", drop.rank);
    field("user", drop.user);
  }
};

template <>
struct FieldsOf<FollowRun> {
  static void list(auto& field, auto& follow) { field("on", follow.on); }
};

template <>
struct FieldsOf<ReleaseHold> {
  static void list(auto& field, auto& release) { field("hold", release.hold); }
};

template <>
struct TypeWord<RankZeroHello> {
  static constexpr const char* kWord = "hello";
};
template <>
struct TypeWord<StatusUpdate> {
  static constexpr const char* kWord = "status";
};
template <>
struct TypeWord<SettingsUpdate> {
  static constexpr const char* kWord = "settings";
};
template <>
struct TypeWord<OrderReport> {
  static constexpr const char* kWord = "order";
};
template <>
struct TypeWord<CallReport> {
  static constexpr const char* kWord = "call";
};
template <>
struct TypeWord<Event> {
  static constexpr const char* kWord = "event";
};
template <>
struct TypeWord<RunEnd> {
  static constexpr const char* kWord = "end";
};
template <>
struct TypeWord<WithdrawOrder> {
  static constexpr const char* kWord = "withdraw";
};
template <>
struct TypeWord<DropRank> {
  static constexpr const char* kWord = "drop";
};
template <>
struct TypeWord<FollowRun> {
  static constexpr const char* kWord = "follow";
};
template <>
struct TypeWord<ReleaseHold> {
  static constexpr const char* kWord = "release";
};
template <>
struct TypeWord<AskRanks> {
  static constexpr const char* kWord = "ranks";
};
template <>
struct TypeWord<RanksAnswer> {
  static constexpr const char* kWord = "ranks";
};
template <>
struct TypeWord<CancelCall> {
  static constexpr const char* kWord = "cancel";
};

namespace {

template <class T>
Json line_of(const T& message) {
  return typed_line(message);
}
Json line_of(const SubmitOrder& submit) {
  return {{"type", "order"}, {"ref", submit.ref}, {"order", submit.order ? to_json(*submit.order) : Json()}};
}
Json line_of(const CancelEvaluation& /*cancel*/) {
  return {{"type", "cancel"}, {"evaluation", true}};
}
Json line_of(const AskStatus& /*ask*/) {
  return {{"type", "ask"}};
}
Json line_of(const PublishEvent& publish) {
  return {{"type", "publish"}, {"topic", to_string(topic_of(publish.data))}, {"data", to_json(publish.data)}};
}
Json line_of(const SyncTopics& sync) {
  Json topics = Json::object();
  for (const auto& [topic, ms] : sync.budget_ms) topics[std::string(to_string(topic))] = ms;
  return {{"type", "sync"}, {"topics", std::move(topics)}};
}

const Json& member(const Json& json, const char* name) {
  static const Json kNone = Json::object();
  const auto found = json.find(name);
  return found == json.end() ? kNone : *found;
}

Result<ConsoleMessage> read_submit(const Json& json) {
  SubmitOrder submit;
  FieldReader field(json);
  field("ref", submit.ref);
  if (auto read = field.take(); !read) return tl::unexpected(read.error());
  const Json order = json.contains("order") ? json["order"] : Json();
  submit.order = order_from_json(order);
  submit.bytes = order.dump(-1, ' ', false, Json::error_handler_t::replace).size();
  return ConsoleMessage(std::move(submit));
}

Result<ConsoleMessage> read_cancel(const Json& json) {
  bool evaluation = false;
  FieldReader field(json);
  field("evaluation", evaluation);
  if (auto read = field.take(); !read) return tl::unexpected(read.error());
  if (evaluation) return ConsoleMessage(CancelEvaluation{});
  return read_line<ConsoleMessage, CancelCall>(json);
}

Result<ConsoleMessage> read_publish(const Json& json) {
  Topic topic = Topic::metrics;
  FieldReader field(json);
  field("topic", topic);
  if (auto read = field.take(); !read) return tl::unexpected(read.error());
  if (topic != Topic::client && topic != Topic::job && topic != Topic::rule && topic != Topic::warn)
    return fail(ErrorKind::usage, "the console publishes client, job, rule and warn");
  return event_data_from_json(topic, member(json, "data")).map([](EventData data) {
    return ConsoleMessage(PublishEvent{std::move(data)});
  });
}

Result<ConsoleMessage> read_sync(const Json& json) {
  std::map<std::string, double> topics;
  FieldReader field(json);
  field("topics", topics);
  if (auto read = field.take(); !read) return tl::unexpected(read.error());
  SyncTopics sync;
  for (const auto& [word, ms] : topics)
    if (const auto topic = from_word<Topic>(word)) sync.budget_ms[*topic] = ms;
  return ConsoleMessage(std::move(sync));
}

template <class Message>
Result<Message> just(Message message) {
  return message;
}

constexpr std::array kRankZeroReaders{
    LineReader<RankZeroMessage>{"hello", read_line<RankZeroMessage, RankZeroHello>},
    LineReader<RankZeroMessage>{"status", read_line<RankZeroMessage, StatusUpdate>},
    LineReader<RankZeroMessage>{"settings", read_line<RankZeroMessage, SettingsUpdate>},
    LineReader<RankZeroMessage>{"order", read_line<RankZeroMessage, OrderReport>},
    LineReader<RankZeroMessage>{"call", read_line<RankZeroMessage, CallReport>},
    LineReader<RankZeroMessage>{"ranks", read_line<RankZeroMessage, RanksAnswer>},
    LineReader<RankZeroMessage>{"event", read_line<RankZeroMessage, Event>},
    LineReader<RankZeroMessage>{"end", read_line<RankZeroMessage, RunEnd>}};

constexpr std::array kConsoleReaders{
    LineReader<ConsoleMessage>{"order", read_submit},
    LineReader<ConsoleMessage>{"withdraw", read_line<ConsoleMessage, WithdrawOrder>},
    LineReader<ConsoleMessage>{"cancel", read_cancel},
    LineReader<ConsoleMessage>{"ask", [](const Json&) { return just<ConsoleMessage>(AskStatus{}); }},
    LineReader<ConsoleMessage>{"ranks", read_line<ConsoleMessage, AskRanks>},
    LineReader<ConsoleMessage>{"drop", read_line<ConsoleMessage, DropRank>},
    LineReader<ConsoleMessage>{"follow", read_line<ConsoleMessage, FollowRun>},
    LineReader<ConsoleMessage>{"publish", read_publish},
    LineReader<ConsoleMessage>{"sync", read_sync},
    LineReader<ConsoleMessage>{"release", read_line<ConsoleMessage, ReleaseHold>}};

}  // namespace

Json to_json(const SettingNow& setting) {
  return write_fields(setting);
}
Result<void> read_json(const Json& json, SettingNow& setting) {
  return read_fields(json, setting);
}

Json to_json(const RunIdentity& run) {
  return write_fields(run);
}
Result<void> read_json(const Json& json, RunIdentity& run) {
  return read_fields(json, run);
}

SettingsUpdate computed_settings(const Schema& schema, const LoggedMetrics& line) {
  SettingsUpdate computed;
  for (const SettingSpec& spec : schema.settings) {
    if (spec.metric.empty()) continue;
    if (const auto value = line.number(spec.metric.c_str()))
      computed.settings[spec.name] = {number_to_json(*value), kComputed};
  }
  return computed;
}
Result<void> read_json(const Json& json, SettingsUpdate& update) {
  return read_fields(json, update);
}

Json to_json(const RankZeroMessage& message) {
  return std::visit([](const auto& one) { return line_of(one); }, message);
}
Result<RankZeroMessage> rank_zero_message_from_json(const Json& json) {
  return read_by_type(kRankZeroReaders, json);
}

Json to_json(const ConsoleMessage& message) {
  return std::visit([](const auto& one) { return line_of(one); }, message);
}
Result<ConsoleMessage> console_message_from_json(const Json& json) {
  return read_by_type(kConsoleReaders, json);
}

}  // namespace footplate
