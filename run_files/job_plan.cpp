#include "run_files/job_plan.h"

#include "protocol/messages/fields.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"

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

namespace {

std::filesystem::path plan_path(const std::filesystem::path& run_directory) {
  return run_directory / kJobPlanFile;
}

}  // namespace

JobPlan read_job_plan(const std::filesystem::path& run_directory) {
  const auto json = read_json_file(plan_path(run_directory));
  if (!json) return {};
  auto plan = read_tolerantly<JobPlan>(*json);
  const auto jobs = json->is_object() ? json->find("jobs") : json->end();
  if (jobs == json->end() || !jobs->is_array()) return plan;
  plan.jobs.clear();  // one that is damaged doesn't hide the others
  for (const Json& one : *jobs)
    if (PlannedJob job; read_fields(one, job)) plan.jobs.push_back(std::move(job));
  return plan;
}

Result<void> write_job_plan(const std::filesystem::path& run_directory, const JobPlan& plan) {
  return write_json_file(plan_path(run_directory), write_fields(plan));
}

}  // namespace footplate
