#include <fstream>

#include "console/host/automation/job_plan.h"
#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<PlannedJob> {
  static void list(auto& field, auto& job) {
    field("name", job.name);
    field("file", job.file);
    field("path", job.path);
    field("arguments", job.arguments);
  }
};

template <>
struct FieldsOf<JobPlan> {
  static void list(auto& field, auto& plan) {
    field("unattended", plan.unattended);
    field("given", plan.given);
    field("jobs", plan.jobs);
  }
};

Json to_json(const PlannedJob& job) {
  return write_fields(job);
}
Result<void> read_json(const Json& json, PlannedJob& job) {
  return read_fields(json, job);
}

Json to_json(const JobPlan& plan) {
  return write_fields(plan);
}
Result<void> read_json(const Json& json, JobPlan& plan) {
  return read_fields(json, plan);
}

Result<JobPlan> JobPlan::read(const std::filesystem::path& path) {
  std::ifstream file(path);
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  JobPlan plan;
  if (!json.is_object()) return plan;
  if (auto read = read_json(json, plan); !read) return tl::unexpected(read.error());
  return plan;
}

}  // namespace footplate
