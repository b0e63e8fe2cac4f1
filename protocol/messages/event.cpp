#include "protocol/messages/event.h"

#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<EvaluationResult> {
  static void list(auto& field, auto& result) {
    field("step", result.step);
    field.unless_empty("failed", result.failed);
    field("loss", result.loss);
    field.unless_empty("metrics", result.metrics);
    field.unless_empty("sets", result.sets);
    if (!result.failed) {
      field("tokens", result.tokens);
      field("batches", result.batches);
      field("seconds", result.seconds);
    }
    field.unless_empty("on", result.on);
    field("best", result.best);
    field("best_step", result.best_step);
    field.unless_empty("retries", result.retries);
    field.unless_empty("reason", result.reason);
    field("local_loss", result.local_loss);
    field.unless_empty("partial", result.partial);
    field("batches_wanted", result.batches_wanted);
  }
};

template <>
struct FieldsOf<SaveResult> {
  static void list(auto& field, auto& result) {
    field("path", result.path);
    field("step", result.step);
    field("seconds", result.seconds);
    field("bytes", result.bytes);
    field.unless_empty("tag", result.tag);
    field.unless_empty("reason", result.reason);
    field("waited_s", result.waited_s);
  }
};

template <>
struct FieldsOf<RunChange> {
  static void list(auto& field, auto& change) {
    field("state", change.state);
    field("step", change.step);
    field.unless_empty("reason", change.reason);
    field("result", change.result);
  }
};

template <>
struct FieldsOf<RankChange> {
  static void list(auto& field, auto& change) {
    field("state", change.state);
    field("rank", change.rank);
    field("ranks", change.ranks);
    field("world_size", change.world_size);
    field("step", change.step);
    field("left", change.left);
    field("level", change.level);
    field("ms", change.ms);
    field.unless_empty("text", change.text);
  }
};

template <>
struct FieldsOf<Warning> {
  static void list(auto& field, auto& warning) {
    field.unless_empty("kind", warning.kind);
    field("text", warning.text);
    field("step", warning.step);
    field("ranks", warning.ranks);
    field.unless_empty("tensors", warning.tensors);
    field("sequence", warning.sequence);
    field.unless_empty("verdict", warning.verdict);
    field.unless_empty("action", warning.action);
    field.unless_empty("setting", warning.setting);
    field.unless_empty("value", warning.value);
    field.unless_empty("command", warning.command);
    field("order", warning.order);
    field.unless_empty("job", warning.job);
    field("rule", warning.rule);
  }
};

template <>
struct FieldsOf<ClientChange> {
  static void list(auto& field, auto& change) {
    field("state", change.state);
    field("user", change.user);
    field("session", change.session);
    field("from", change.from);
  }
};

template <>
struct FieldsOf<JobLine> {
  static void list(auto& field, auto& line) {
    field("job", line.job);
    field("text", line.text);
  }
};

template <>
struct FieldsOf<RuleChange> {
  static void list(auto& field, auto& change) {
    field("rule", change.rule);
    field("text", change.text);
  }
};

template <>
struct FieldsOf<MeasuredCollective> {
  static void list(auto& field, auto& row) {
    field("collective", row.collective);
    field("algorithm", row.algorithm);
    field("protocol", row.protocol);
    field("channels", row.channels);
    field("ranks", row.ranks);
    field("at_least", row.at_least);
    field("count", row.count);
    field("bytes", row.bytes);
    field("mean_us", row.mean_us);
    field("least_us", row.least_us);
    field("most_us", row.most_us);
    field("bus_gb_per_s", row.bus_gb_per_s);
  }
};

template <>
struct FieldsOf<NcclMeasurement> {
  static void list(auto& field, auto& measurement) {
    field("step", measurement.step);
    field("steps", measurement.steps);
    field("step_ms", measurement.step_ms);
    field("collectives", measurement.collectives);
    field("unfinished", measurement.unfinished);
    field("left_out", measurement.left_out);
  }
};

template <>
struct FieldsOf<StepProfile> {
  static void list(auto& field, auto& profile) {
    field("first", profile.first);
    field("steps", profile.steps);
    field("recorded", profile.recorded);
    field.unless_empty("path", profile.path);
    field.unless_empty("missing", profile.missing);
    field.unless_empty("lost_collectives", profile.lost_collectives);
    field.unless_empty("reason", profile.reason);
  }
};

template <>
struct FieldsOf<Note> {
  static void list(auto& field, auto& note) {
    field("step", note.step);
    field("text", note.text);
    field("source", note.source);
  }
};

std::int64_t LoggedMetrics::step() const {
  const auto found = values.find("step");
  return found != values.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

std::optional<double> LoggedMetrics::number(const char* name) const {
  const auto found = values.find(name);
  return found == values.end() ? std::nullopt : number_from_json(*found);
}

std::string LoggedMetrics::text(const char* name) const {
  const auto found = values.find(name);
  return found != values.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string LoggedMetrics::pace_unit() const {
  const std::string unit = text("unit");
  return (unit.empty() ? kUsualUnit : unit) + "/s";
}

Json to_json(const LoggedMetrics& metrics) {
  return metrics.values;
}
Result<void> read_json(const Json& json, LoggedMetrics& metrics) {
  if (!json.is_object()) return fields::wrong("an object");
  metrics.values = json;
  return {};
}

Json to_json(const EvaluationResult& result) {
  return write_fields(result);
}
Result<void> read_json(const Json& json, EvaluationResult& result) {
  return read_fields(json, result);
}

Json to_json(const SaveResult& result) {
  return write_fields(result);
}
Result<void> read_json(const Json& json, SaveResult& result) {
  return read_fields(json, result);
}

Json to_json(const RunChange& change) {
  return write_fields(change);
}
Result<void> read_json(const Json& json, RunChange& change) {
  return read_fields(json, change);
}

Json to_json(const RankChange& change) {
  return write_fields(change);
}
Result<void> read_json(const Json& json, RankChange& change) {
  return read_fields(json, change);
}

Json to_json(const Warning& warning) {
  return write_fields(warning);
}
Result<void> read_json(const Json& json, Warning& warning) {
  return read_fields(json, warning);
}

Json to_json(const ClientChange& change) {
  return write_fields(change);
}
Result<void> read_json(const Json& json, ClientChange& change) {
  return read_fields(json, change);
}

Json to_json(const JobLine& line) {
  return write_fields(line);
}
Result<void> read_json(const Json& json, JobLine& line) {
  return read_fields(json, line);
}

Json to_json(const RuleChange& change) {
  return write_fields(change);
}
Result<void> read_json(const Json& json, RuleChange& change) {
  return read_fields(json, change);
}

Json to_json(const NcclMeasurement& measurement) {
  return write_fields(measurement);
}
Result<void> read_json(const Json& json, NcclMeasurement& measurement) {
  return read_fields(json, measurement);
}

Json to_json(const StepProfile& profile) {
  return write_fields(profile);
}
Result<void> read_json(const Json& json, StepProfile& profile) {
  return read_fields(json, profile);
}

Json to_json(const Note& note) {
  return write_fields(note);
}
Result<void> read_json(const Json& json, Note& note) {
  return read_fields(json, note);
}

Json to_json(const EventData& data) {
  return std::visit([](const auto& one) { return to_json(one); }, data);
}

namespace {

/// Reads the alternative that `topic` stands for.
template <std::size_t index = 0>
Result<EventData> read_alternative(Topic topic, const Json& json) {
  if constexpr (index < std::variant_size_v<EventData>) {
    if (static_cast<std::size_t>(topic) != index) return read_alternative<index + 1>(topic, json);
    return read_as<std::variant_alternative_t<index, EventData>>(json).map(
        [](auto read) { return EventData(std::move(read)); });
  } else {
    return fail(ErrorKind::usage, "unknown topic");
  }
}

}  // namespace

Result<EventData> event_data_from_json(Topic topic, const Json& json) {
  return read_alternative(topic, json);
}

Json to_json(const Event& event) {
  FieldWriter field;
  field("type", std::string("event"));
  field("topic", topic_of(event.data));
  field("time", event.time);
  field("data", event.data);
  field.unless_empty("sequence", event.sequence);
  field.unless_empty("hold", event.hold);
  field.unless_empty("lost", event.lost);
  return field.take();
}

Result<void> read_json(const Json& json, Event& event) {
  if (!json.is_object()) return fields::wrong("an object");
  FieldReader field(json);
  Topic topic = Topic::metrics;
  Json data = Json::object();
  field("topic", topic);
  field("time", event.time);
  field("data", data);
  field("sequence", event.sequence);
  field("hold", event.hold);
  field("lost", event.lost);
  if (auto read = field.take(); !read) return read;
  return event_data_from_json(topic, data).map([&](EventData read) { event.data = std::move(read); });
}

}  // namespace footplate
