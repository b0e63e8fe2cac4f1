#include "console/lua/config/config.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "console/lua/config/bounded_state.h"
#include "console/lua/config/config_groups.h"
#include "protocol/task_name.h"

namespace footplate {
namespace {

Result<std::string> read_file(const std::filesystem::path& path, const std::string& shown_as,
                              std::size_t limit) {
  const auto unreadable = [&](const std::string& why) {
    return fail(ErrorKind::usage, "can't read config " + shown_as + ": " + why);
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return unreadable("it is a folder");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return unreadable(std::strerror(errno));
  std::string text(limit + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > limit) return unreadable("it is larger than " + std::to_string(limit >> 10) + " KiB");
  if (text.rfind("#!", 0) == 0) text.insert(0, "--");  // a first line for the system's loader
  return text;
}

/// Lua's own name for the chunk, wherever it stands in the message, becomes the file's name.
std::string with_file_name(std::string message, const std::string& shown_as) {
  const std::string chunk = BoundedState::kChunkName;
  for (auto at = message.find(chunk); at != std::string::npos; at = message.find(chunk, at + shown_as.size()))
    message.replace(at, chunk.size(), shown_as);
  return message.rfind(shown_as + ":", 0) == 0 ? message : shown_as + ": " + message;
}

std::string computed(const SettingSpec& spec) {
  std::string knobs;
  for (const auto& knob : spec.knobs) knobs += (knobs.empty() ? "" : " or ") + knob;
  return spec.name + " is computed and can't be set; set " + knobs;
}

}  // namespace

Result<Value> check_config_value(const Schema& schema, std::string_view name, const Json& value) {
  const SettingSpec* spec = schema.setting(name);
  if (spec != nullptr && !spec->knobs.empty()) return fail(ErrorKind::usage, computed(*spec));
  return schema.check(name, value);
}

Result<Value> check_config_text(const Schema& schema, std::string_view name, std::string_view text) {
  const SettingSpec* spec = schema.setting(name);
  if (spec != nullptr && !spec->knobs.empty()) return fail(ErrorKind::usage, computed(*spec));
  return schema.check_text(name, text);
}

Result<void> set_checked_value(Schema& schema, Settings& settings, std::string_view name, Value value,
                               std::string source, const SchemaOfTask& of_task) {
  if (name == "run.task" && of_task) {
    const std::string task = absolute_task(std::get<std::string>(value));
    auto of_it = of_task(task);
    if (!of_it) return tl::unexpected(of_it.error());
    schema = *std::move(of_it);
    settings = settings.for_schema(schema);
    value = task;
  }
  settings.set(name, std::move(value), std::move(source));
  return {};
}

namespace {

Result<Settings> evaluate(const std::string& text, const std::string& shown_as, Schema& schema,
                          Settings settings, const SchemaOfTask& of_task, const ConfigLimits& limits) {
  BoundedState state(limits.memory_bytes, limits.instructions, limits.processor_s);
  auto ran =
      state.run(text, [&](lua_State* lua) { install_groups(lua, schema, settings, shown_as, of_task); });
  if (!ran) return fail(ran.error().kind, with_file_name(std::move(ran.error().message), shown_as));
  return settings;
}

}  // namespace

Result<Settings> evaluate_config_text(const std::string& text, const std::string& shown_as, Schema schema,
                                      Settings settings, const ConfigLimits& limits) {
  return evaluate(text, shown_as, schema, std::move(settings), {}, limits);
}

Result<Settings> evaluate_config(const std::filesystem::path& path, const std::string& shown_as,
                                 Schema& schema, Settings settings, const SchemaOfTask& of_task,
                                 const ConfigLimits& limits) {
  auto text = read_file(path, shown_as, limits.file_bytes);
  if (!text) return tl::unexpected(text.error());
  return evaluate(*text, shown_as, schema, std::move(settings), of_task, limits);
}

}  // namespace footplate
