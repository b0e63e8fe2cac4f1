#include "protocol/messages/reports.h"

#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<CountedCollectives> {
  static void list(auto& field, auto& counted) {
    field("rank", counted.rank);
    field("kind", counted.kind);
    field("at_least", counted.at_least);
    field("count", counted.count);
    field("bytes", counted.bytes);
    field("total_ms", counted.total_ms);
    field("longest_ms", counted.longest_ms);
    field("overdue", counted.overdue);
  }
};

template <>
struct FieldsOf<SettingProposal> {
  static void list(auto& field, auto& proposal) {
    field("setting", proposal.setting);
    field("value", proposal.value);
    field("command", proposal.command);
    field("text", proposal.text);
  }
};

template <>
struct FieldsOf<CommReport> {
  static void list(auto& field, auto& report) {
    field("patterns", report.patterns);
    field("proposals", report.proposals);
  }
};

template <>
struct FieldsOf<DumpedLedger> {
  static void list(auto& field, auto& dumped) {
    field("rank", dumped.rank);
    field.unless_empty("path", dumped.path);
    field.unless_empty("operations", dumped.operations);
    field.unless_empty("error", dumped.error);
  }
};

template <>
struct FieldsOf<DumpReport> {
  static void list(auto& field, auto& report) { field("ranks", report.ranks); }
};

template <>
struct FieldsOf<ThreadPlace> {
  static void list(auto& field, auto& thread) {
    field("name", thread.name);
    field("tid", thread.tid);
    field("state", thread.state);
    field("frames", thread.frames);
    field.unless_empty("note", thread.note);
  }
};

template <>
struct FieldsOf<RankStacks> {
  static void list(auto& field, auto& stacks) {
    field("rank", stacks.rank);
    field("threads", stacks.threads);
    field("silent_s", stacks.silent_s);
    field.unless_empty("text", stacks.text);
  }
};

template <>
struct FieldsOf<StackReport> {
  static void list(auto& field, auto& report) {
    field.nullable("rank", report.rank);
    field("ranks", report.ranks);
  }
};

Json to_json(const CountedCollectives& counted) {
  return write_fields(counted);
}
Result<void> read_json(const Json& json, CountedCollectives& counted) {
  return read_fields(json, counted);
}

Json to_json(const CommReport& report) {
  return write_fields(report);
}
Result<void> read_json(const Json& json, CommReport& report) {
  return read_fields(json, report);
}

Json to_json(const DumpedLedger& dumped) {
  return write_fields(dumped);
}
Result<void> read_json(const Json& json, DumpedLedger& dumped) {
  return read_fields(json, dumped);
}

Json to_json(const DumpReport& report) {
  return write_fields(report);
}
Result<void> read_json(const Json& json, DumpReport& report) {
  return read_fields(json, report);
}

Json to_json(const ThreadPlace& thread) {
  return write_fields(thread);
}
Result<void> read_json(const Json& json, ThreadPlace& thread) {
  return read_fields(json, thread);
}

Json to_json(const StackReport& report) {
  return write_fields(report);
}
Result<void> read_json(const Json& json, StackReport& report) {
  return read_fields(json, report);
}

Json to_json(const RankStacks& stacks) {
  return write_fields(stacks);
}

}  // namespace footplate
