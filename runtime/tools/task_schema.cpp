#include "runtime/tools/task_schema.h"

#include <cstdio>

#include "protocol/exit_codes.h"
#include "protocol/json.h"
#include "runtime/tasks/registry.h"

namespace footplate {

int print_schema_of(const std::string& task) {
  const auto schema = schema_of_task(task);
  if (!schema) {
    std::fprintf(stderr, "%s\n", schema.error().message.c_str());
    std::printf("%s", to_line({{"error", schema.error().message}}).c_str());
    return static_cast<int>(ExitCode::usage);
  }
  std::printf("%s\n", schema->to_json().dump(1).c_str());
  return static_cast<int>(ExitCode::done);
}

}  // namespace footplate
