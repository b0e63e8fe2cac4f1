#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "protocol/result.h"
#include "protocol/settings.h"

namespace footplate {

/// What one config file may use. A config assigns; these are far beyond what that takes.
struct ConfigLimits {
  std::size_t file_bytes = 1 << 20;
  std::size_t memory_bytes = 16 << 20;
  int instructions = 20'000'000;
  double processor_s = 2;
};

/// The schema of a run with that run.task: a plugin has settings and actions of its own. Errors (usage):
/// there is no such task.
using SchemaOfTask = std::function<Result<Schema>(const std::string& task)>;

/// Runs a config file on top of `settings` and returns the result. A config is Lua that assigns settings:
/// `log.every = 10`, `train.set{ steps = 100, clip_norm = 1 }`, `set{ train = { steps = 100 } }`, with
/// locals, arithmetic, conditionals and loops; reading a setting gives what earlier lines, earlier configs or
/// the schema gave it. There is no io, no os, no random number and nothing that the limits can't stop.
///
/// Each value is checked against `schema` where it is assigned and gets the source "configs/kjv.lua:3". The
/// first error ends the evaluation: its message starts with file and line. Errors are of kind usage.
/// `shown_as` is the name of the file in messages and sources. Several configs merge by calls in a row.
/// Where run.task is assigned, `schema` becomes what `of_task` gives, from that line on.
Result<Settings> evaluate_config(const std::filesystem::path& path, const std::string& shown_as,
                                 Schema& schema, Settings settings, const SchemaOfTask& of_task,
                                 const ConfigLimits& limits = {});

/// The same for a text already in memory; without `of_task` the schema stays what it is.
Result<Settings> evaluate_config_text(const std::string& text, const std::string& shown_as, Schema schema,
                                      Settings settings, const ConfigLimits& limits = {});

/// Sets `name` to a value that was checked; where that is run.task, schema and settings become those of the
/// task. The error is of_task's.
Result<void> set_checked_value(Schema& schema, Settings& settings, std::string_view name, Value value,
                               std::string source, const SchemaOfTask& of_task);

/// A value for `name` that a config or a command line may set: as Schema::check, and not a computed setting.
Result<Value> check_config_value(const Schema& schema, std::string_view name, const Json& value);
/// The same for KEY=VALUE, as Schema::check_text.
Result<Value> check_config_text(const Schema& schema, std::string_view name, std::string_view text);

}  // namespace footplate
