#include "protocol/messages/rules_and_jobs.h"

#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<RuleSpec> {
  static void list(auto& field, auto& spec) {
    field("kind", spec.kind);
    field("steps", spec.steps);
    field("seconds", spec.seconds);
    field("step", spec.step);
    field("event", spec.event);
    field("budget_ms", spec.budget_ms);
    field("on_error", spec.on_error);
    field.unless_empty("sync", spec.sync);
    field("text", spec.text);
    field("source", spec.source);
    field("line", spec.line);
    field("index", spec.index);
    field.unless_empty("dropped", spec.dropped);
  }
};

template <>
struct FieldsOf<RuleStatus> {
  static void list(auto& field, auto& rule) {
    field("rule", rule.rule);
    field("text", rule.text);
    field("state", rule.state);
    field("runs", rule.runs);
    field("user", rule.user);
    field("kind", rule.kind);
    field("why", rule.why);
    field("sync", rule.sync);
    field("budget_ms", rule.budget_ms);
    field("line", rule.line);
    field.unless_empty("job", rule.job);
  }
};

template <>
struct FieldsOf<JobStatus> {
  static void list(auto& field, auto& job) {
    field("job", job.job);
    field("path", job.path);
    field("state", job.state);
    field("resumed", job.resumed);
    field("error", job.error);
  }
};

Json to_json(const RuleSpec& spec) {
  return write_fields(spec);
}
Result<void> read_json(const Json& json, RuleSpec& spec) {
  if (auto read = read_fields(json, spec); !read) return read;
  const bool whole = spec.kind == RuleKind::every   ? spec.steps && *spec.steps > 0
                     : spec.kind == RuleKind::after ? spec.steps.has_value() != spec.seconds.has_value()
                     : spec.kind == RuleKind::at    ? spec.step.has_value()
                     : spec.kind == RuleKind::on    ? spec.event.has_value()
                                                    : true;
  if (!whole)
    return fail(ErrorKind::usage,
                "a rule of kind " + std::string(to_string(spec.kind)) + " lacks what it waits for");
  return {};
}

Json to_json(const RuleStatus& rule) {
  return write_fields(rule);
}
Result<void> read_json(const Json& json, RuleStatus& rule) {
  return read_fields(json, rule);
}

Json to_json(const JobStatus& job) {
  return write_fields(job);
}
Result<void> read_json(const Json& json, JobStatus& job) {
  return read_fields(json, job);
}

}  // namespace footplate
