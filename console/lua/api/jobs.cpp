#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/session/session.h"
#include "protocol/schema.h"

// Job scripts as scripts see them: jobs(), jobs.early_stop:off().

namespace footplate::lua {
namespace {

constexpr const char* kJob = "footplate.job";

std::string name_at(lua_State* state, int index) {
  luaL_checkudata(state, index, kJob);
  lua_getiuservalue(state, index, 1);
  std::string name = lua_tostring(state, -1);
  lua_pop(state, 1);
  return name;
}

std::vector<JobStatus> all_jobs(lua_State* state) {
  return session_of(state).look(request::Jobs{});
}

std::string describe_job(const JobStatus& job) {
  return job.job + "  " + std::string(to_string(job.state)) + (job.error.empty() ? "" : " · " + job.error);
}

JobStatus find_job(lua_State* state, const std::string& name) {
  std::vector<std::string> known;
  for (const JobStatus& job : all_jobs(state)) {
    if (job.job == name) return job;
    known.push_back(job.job);
  }
  const std::string near = nearest(name, known);
  throw ScriptError("there is no job '" + name + "'" +
                    (near.empty() ? "; jobs() lists them" : "; did you mean jobs." + near + "?"));
}

/// jobs(): all of them.
int jobs_call(lua_State* state) {
  const auto jobs = all_jobs(state);
  std::string text;
  for (const JobStatus& job : jobs) text += (text.empty() ? "" : "\n") + describe_job(job);
  push_listing(state, list_of(jobs),
               text.empty() ? "no job scripts; footplate run CONFIG --script FILE starts one" : text);
  return 1;
}

int job_off(lua_State* state) {
  if (session_of(state).activity().mode == Activity::Mode::registering) return 0;  // the chunk did it
  session_of(state).ask(request::StopJob{name_at(state, 1)});
  return 0;
}

int job_index(lua_State* state) {
  const std::string name = name_at(state, 1);
  const std::string key = string_argument(state, 2);
  if (key == "off") {
    lua_pushcfunction(state, bound<job_off>);
    return 1;
  }
  if (key != "job" && key != "path" && key != "state" && key != "resumed" && key != "error")
    throw ScriptError("a job has :off(), .job, .path, .state, .resumed and .error, not '" + key + "'");
  push_field(state, to_json(find_job(state, name)), key);
  return 1;
}

int job_text(lua_State* state) {
  const std::string text = describe_job(find_job(state, name_at(state, 1)));
  lua_pushlstring(state, text.data(), text.size());
  return 1;
}

int job_json(lua_State* state) {
  push_json(state, to_json(find_job(state, name_at(state, 1))));
  return 1;
}

void push_job(lua_State* state, const std::string& name) {
  lua_newuserdatauv(state, 0, 1);
  lua_pushlstring(state, name.data(), name.size());
  lua_setiuservalue(state, -2, 1);
  luaL_setmetatable(state, kJob);
}

/// jobs.early_stop
int jobs_index(lua_State* state) {
  const std::string name = string_argument(state, 2);
  find_job(state, name);
  push_job(state, name);
  return 1;
}

/// for name, job in pairs(jobs)
int jobs_pairs(lua_State* state) {
  return push_pairs(state, all_jobs(state), [state](const JobStatus& job) {
    push_text(state, job.job);
    push_job(state, job.job);
  });
}

int jobs_length(lua_State* state) {
  lua_pushinteger(state, static_cast<lua_Integer>(all_jobs(state).size()));
  return 1;
}

int push_jobs(lua_State* state) {
  constexpr luaL_Reg kJobMethods[] = {{"__index", bound<job_index>},
                                      {"__tostring", bound<job_text>},
                                      {"__json", bound<job_json>},
                                      {nullptr, nullptr}};
  add_locked_type(state, kJob, kJobMethods);
  constexpr luaL_Reg kJobs[] = {{"__index", bound<jobs_index>},
                                {"__call", bound<jobs_call>},
                                {"__pairs", bound<jobs_pairs>},
                                {"__len", bound<jobs_length>},
                                {"__json", bound<jobs_call>},
                                {"__tostring", bound<text_of_contents<jobs_call>>},
                                {nullptr, nullptr}};
  push_locked_object(state, kJobs);
  return 1;
}

constexpr Registration kJobFunctions[] = {
    {.doc = {.name = "jobs",
             .role = Role::view,
             .example = "jobs()",
             .help = "the job scripts of footplate run --script; jobs.NAME:off() ends one and its rules",
             .in_overview = true},
     .form = Form::object,
     .handler = bound<push_jobs>},
};

}  // namespace

std::span<const Registration> job_functions() {
  return kJobFunctions;
}

}  // namespace footplate::lua
