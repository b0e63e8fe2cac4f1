#include "runtime/tools/check_data.h"

#include <cstdio>
#include <iostream>

#include "protocol/exit_codes.h"
#include "protocol/settings.h"
#include "protocol/task_name.h"
#include "runtime/data/corpus.h"
#include "runtime/tasks/registry.h"
#include "runtime/train/schedule.h"

namespace footplate {
namespace {

Result<void> look_at_data() {
  const Json json = Json::parse(std::cin, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return fail(ErrorKind::usage, "--check-data: what is on stdin isn't JSON");
  const std::string task = Settings::text_in(json, "run.task", "text");
  const auto schema = schema_of_task(task);
  if (!schema) return tl::unexpected(schema.error());
  const auto settings = Settings::from_json(json, *schema);
  if (!settings) return tl::unexpected(settings.error());
  if (const std::string warning = warmup_warning(Schedule::from(*settings)); !warning.empty())
    std::fprintf(stderr, "footplate: warning: %s\n", warning.c_str());
  if (is_own_task(task)) {
    const auto made = make_task(*settings, {}, host_device());
    return made ? Result<void>() : tl::unexpected(made.error());
  }
  if (task != "text") return {};
  const std::string& name = settings->string("data.corpus");
  const auto bytes = Corpus::look(name);
  if (!bytes) return tl::unexpected(bytes.error());
  return *bytes ? Corpus::check_length(name, **bytes, settings->integer("model.context")) : Result<void>();
}

}  // namespace

int check_data() {
  const auto looked = look_at_data();
  if (looked) return static_cast<int>(ExitCode::done);
  std::fprintf(stderr, "%s\n", looked.error().message.c_str());
  return static_cast<int>(ExitCode::usage);
}

}  // namespace footplate
