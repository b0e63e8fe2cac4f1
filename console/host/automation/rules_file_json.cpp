#include "console/host/automation/rules_file.h"
#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<KeptChunk> {
  static void list(auto& field, auto& chunk) {
    field("id", chunk.id);
    field("code", chunk.code);
    field("name", chunk.name);
    field("user", chunk.user);
    field("session", chunk.session);
    field("role", chunk.role);
  }
};

template <>
struct FieldsOf<KeptJob> {
  static void list(auto& field, auto& job) {
    field("started", job.started);
    field("given", job.given);
    field("state", job.state);
  }
};

namespace {

/// What rules.json has of a rule beside the fields of its status.
void list_beside_status(auto& field, auto& rule) {
  field("spec", rule.spec);
  field("role", rule.role);
  field("chunk", rule.chunk);
  field("next_step", rule.next_step);
  field("due", rule.due);
  field("fired_at", rule.fired_at);
  field("called", rule.called);
  field("for_good", rule.for_good);
}

void list_kept_rules(auto& field, auto& kept) {
  field("started", kept.started);
  field("begun", kept.begun);
  field("next_chunk", kept.next_chunk);
  field("next_rule", kept.next_rule);
  field("jobs", kept.jobs);
  field("chunks", kept.chunks);
  field("rules", kept.rules);
}

}  // namespace

Json to_json(const KeptChunk& chunk) {
  return write_fields(chunk);
}
Result<void> read_json(const Json& json, KeptChunk& chunk) {
  return read_fields(json, chunk);
}

Json to_json(const KeptJob& job) {
  return write_fields(job);
}
Result<void> read_json(const Json& json, KeptJob& job) {
  return read_fields(json, job);
}

Json to_json(const KeptRule& rule) {
  FieldWriter field;
  list_beside_status(field, rule);
  Json json = to_json(rule.status);
  json.update(field.take());
  return json;
}
Result<void> read_json(const Json& json, KeptRule& rule) {
  if (auto read = read_json(json, rule.status); !read) return read;
  FieldReader field(json);
  list_beside_status(field, rule);
  return field.take();
}

Json to_json(const KeptRules& kept) {
  FieldWriter field;
  field("version", 1);
  list_kept_rules(field, kept);
  return field.take();
}
Result<void> read_json(const Json& json, KeptRules& kept) {
  if (!json.is_object()) return fields::wrong("an object");
  FieldReader field(json);
  list_kept_rules(field, kept);
  return field.take();
}

}  // namespace footplate
