#include "console/host/automation/rules_file.h"

#include <algorithm>

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

void list_header(auto& field, auto& kept) {
  field("started", kept.started);
  field("begun", kept.begun);
  field("next_chunk", kept.next_chunk);
  field("next_rule", kept.next_rule);
}

void list_items(auto& field, auto& kept) {
  field("jobs", kept.jobs);
  field("chunks", kept.chunks);
  field("rules", kept.rules);
}

template <class T>
void read_each(const Json& items, const std::string& what, std::vector<T>& kept,
               std::vector<std::string>& lost) {
  if (!items.is_array() && !items.is_null()) lost.push_back("every " + what + ": they have to be a list");
  if (!items.is_array()) return;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (auto item = read_as<T>(items[i]); item)
      kept.push_back(*std::move(item));
    else
      lost.push_back(what + " " + std::to_string(i + 1) + " of " + std::to_string(items.size()) + ": " +
                     item.error().message);
  }
}

void read_jobs(const Json& jobs, std::map<std::string, KeptJob>& kept, std::vector<std::string>& lost) {
  if (!jobs.is_object() && !jobs.is_null()) lost.push_back("every job: they have to be an object");
  if (!jobs.is_object()) return;
  for (const auto& [name, json] : jobs.items()) {
    if (auto job = read_as<KeptJob>(json); job)
      kept[name] = *std::move(job);
    else
      lost.push_back("job " + name + ": " + job.error().message);
  }
}

/// Their functions are in the chunk: without it there is nothing to call.
void drop_without_chunk(KeptRules& kept, std::vector<std::string>& lost) {
  const auto has_chunk = [&](const KeptRule& rule) {
    return std::ranges::any_of(kept.chunks, [&](const KeptChunk& chunk) { return chunk.id == rule.chunk; });
  };
  std::erase_if(kept.rules, [&](const KeptRule& rule) {
    const bool gone = rule.status.state == RuleState::on && !has_chunk(rule);
    if (gone) lost.push_back(rule.status.text + ": the chunk that registered it is lost");
    return gone;
  });
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
  list_header(field, kept);
  list_items(field, kept);
  return field.take();
}

KeptRules read_kept_rules(const Json& json, std::vector<std::string>& lost) {
  KeptRules kept;
  FieldReader header(json);
  list_header(header, kept);
  if (auto read = header.take(); !read) lost.push_back("the header is lost: " + read.error().message);
  const auto items = [&](const char* name) { return json.contains(name) ? json[name] : Json(); };
  read_each(items("chunks"), "chunk", kept.chunks, lost);
  read_each(items("rules"), "rule", kept.rules, lost);
  read_jobs(items("jobs"), kept.jobs, lost);
  drop_without_chunk(kept, lost);
  for (const KeptChunk& chunk : kept.chunks) kept.next_chunk = std::max(kept.next_chunk, chunk.id + 1);
  for (const KeptRule& rule : kept.rules) kept.next_rule = std::max(kept.next_rule, rule.status.rule + 1);
  return kept;
}

}  // namespace footplate
