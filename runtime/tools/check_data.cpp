#include "runtime/tools/check_data.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>

#include "protocol/exit_codes.h"
#include "protocol/settings.h"
#include "protocol/task_check.h"
#include "protocol/task_name.h"
#include "runtime/data/corpus.h"
#include "runtime/tasks/registry.h"
#include "runtime/train/schedule.h"

namespace footplate {
namespace {

void tell(std::string_view start, const std::string& rest = "") {
  std::fprintf(stderr, "%.*s%s\n", static_cast<int>(start.size()), start.data(), rest.c_str());
}

void tell_of_task(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) tell(kTaskLine, line);
}

/// What load() gives for the first sample of each data set, to train on and held out.
void load_samples(const HostedTask& task) {
  constexpr std::array<std::int64_t, 1> kFirst{0};
  for (std::size_t set = 0; set < task.sets().size(); ++set) {
    const v1::DataSet& data = task.sets()[set];
    const int number = static_cast<int>(set);
    tell(kCheckPart, "load()");
    if (data.training > 0 || data.order == v1::Order::counted) task.load({number, {0, 1}});
    tell(kCheckPart, "load(), of what is held out");
    if (data.held_out > 0) task.load_held_out(number, kFirst);
  }
}

Result<void> look_at_task(const Settings& settings) {
  tell(kCheckPart, "its constructor, parameters(), data(), prepare() or changed()");
  const auto made = make_task(settings, {.log = tell_of_task}, host_device());
  if (!made) return tl::unexpected(made.error());
  try {
    load_samples(**made);
  } catch (const std::exception& error) {
    return fail(ErrorKind::usage, "run.task = \"" + settings.string("run.task") +
                                      "\": a sample can't be loaded: " + (*made)->device().explain(error));
  } catch (...) {
    return fail(ErrorKind::usage, "run.task = \"" + settings.string("run.task") +
                                      "\": a sample can't be loaded: " + kThrewNoException);
  }
  tell(kCheckPart, "its destructor");
  return {};
}

Result<void> look_at_data() {
  const Json json = Json::parse(std::cin, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return fail(ErrorKind::usage, "--check-data: what is on stdin isn't JSON");
  const std::string task = Settings::text_in(json, "run.task", "text");
  if (is_own_task(task)) tell(kCheckPart, "the opening of its file, or declare()");
  const auto schema = schema_of_task(task);
  if (!schema) return tl::unexpected(schema.error());
  const auto settings = Settings::from_json(json, *schema);
  if (!settings) return tl::unexpected(settings.error());
  if (const std::string warning = warmup_warning(Schedule::from(*settings)); !warning.empty())
    tell(kWarningLine, warning);
  if (declares_settings(task)) return look_at_task(*settings);
  if (task != "text") return {};
  const std::string& name = settings->string("data.corpus");
  const auto bytes = Corpus::look(name);
  if (!bytes) return tl::unexpected(bytes.error());
  return *bytes ? Corpus::check_length(name, **bytes, settings->integer("model.context")) : Result<void>();
}

}  // namespace

int check_data() {
  const auto looked = look_at_data();
  if (!looked) std::fprintf(stderr, "%s\n", looked.error().message.c_str());
  tell(kCheckDone);
  return static_cast<int>(looked ? ExitCode::done : ExitCode::usage);
}

}  // namespace footplate
