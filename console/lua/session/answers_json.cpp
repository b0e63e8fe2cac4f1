#include "console/lua/session/answers_json.h"

#include "protocol/messages/fields.h"
#include "protocol/messages/link_messages.h"
#include "protocol/messages/reports.h"
#include "protocol/messages/rules_and_jobs.h"
#include "protocol/messages/run_status.h"
#include "run_files/checkpoint_list.h"

namespace footplate {

template <>
struct FieldsOf<lua::Done> {
  static void list(auto& /*field*/, auto& /*done*/) {}
};

template <>
struct FieldsOf<lua::OrderTaken> {
  static void list(auto& field, auto& taken) { field("ref", taken.ref); }
};

template <>
struct FieldsOf<lua::PersonAnswer> {
  static void list(auto& field, auto& answer) { field("yes", answer.yes); }
};

template <>
struct FieldsOf<lua::RuleTaken> {
  static void list(auto& field, auto& taken) { field("rule", taken.rule); }
};

template <>
struct FieldsOf<lua::RulesTaken> {
  static void list(auto& field, auto& taken) { field("numbers", taken.numbers); }
};

template <>
struct FieldsOf<lua::PlaceReached> {
  static void list(auto& field, auto& reached) {
    field("step", reached.step);
    field("event", reached.event);
    field("timed_out", reached.timed_out);
  }
};

template <>
struct FieldsOf<lua::PendingSetting> {
  static void list(auto& field, auto& setting) {
    field("name", setting.name);
    field("value", setting.value);
    field("at_start", setting.at_start);
    field("source", setting.source);
  }
};

template <>
struct FieldsOf<lua::LoggedLines> {
  static void list(auto& field, auto& logged) {
    field("next", logged.next);
    field("lines", logged.lines);
  }
};

template <>
struct FieldsOf<lua::MeasurementBegun> {
  static void list(auto& field, auto& begun) { field("last", begun.last); }
};

}  // namespace footplate

namespace footplate::lua {

Json to_json(const PendingSetting& setting) {
  return write_fields(setting);
}

template <class T>
Result<T> read_answer(const Json& json) {
  T answer{};
  if (auto read = fields::read(json, answer); !read) return tl::unexpected(read.error());
  return answer;
}

template Result<Json> read_answer(const Json&);
template Result<std::string> read_answer(const Json&);
template Result<OrderReport> read_answer(const Json&);
template Result<std::vector<OrderReport>> read_answer(const Json&);
template Result<CallReport> read_answer(const Json&);
template Result<RunStatus> read_answer(const Json&);
template Result<std::vector<RuleStatus>> read_answer(const Json&);
template Result<std::vector<JobStatus>> read_answer(const Json&);
template Result<std::vector<CheckpointSummary>> read_answer(const Json&);
template Result<CommReport> read_answer(const Json&);
template Result<DumpReport> read_answer(const Json&);
template Result<StackReport> read_answer(const Json&);
template Result<std::map<std::string, SettingNow>> read_answer(const Json&);
template Result<LoggedMetrics> read_answer(const Json&);
template Result<SaveResult> read_answer(const Json&);
template Result<NcclMeasurement> read_answer(const Json&);
template Result<Done> read_answer(const Json&);
template Result<OrderTaken> read_answer(const Json&);
template Result<PersonAnswer> read_answer(const Json&);
template Result<RuleTaken> read_answer(const Json&);
template Result<RulesTaken> read_answer(const Json&);
template Result<PlaceReached> read_answer(const Json&);
template Result<std::vector<PendingSetting>> read_answer(const Json&);
template Result<LoggedLines> read_answer(const Json&);
template Result<MeasurementBegun> read_answer(const Json&);

}  // namespace footplate::lua
