#pragma once

#include <filesystem>
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

/// Runs a config file on top of `settings` and returns the result. A config is Lua that assigns settings:
/// `log.every = 10`, `train.set{ steps = 100, clip_norm = 1 }`, `set{ train = { steps = 100 } }`, with
/// locals, arithmetic, conditionals and loops; reading a setting gives what earlier lines, earlier configs or
/// the schema gave it. There is no io, no os, no random number and nothing that the limits can't stop.
///
/// Each value is checked against `schema` where it is assigned and gets the source "configs/kjv.lua:3". The
/// first error ends the evaluation: its message starts with file and line. Errors are of kind usage.
/// `shown_as` is the name of the file in messages and sources. Several configs merge by calls in a row.
Result<Settings> evaluate_config(const std::filesystem::path& path, const std::string& shown_as,
                                 const Schema& schema, Settings settings, const ConfigLimits& limits = {});

/// The same for a text already in memory.
Result<Settings> evaluate_config_text(const std::string& text, const std::string& shown_as,
                                      const Schema& schema, Settings settings,
                                      const ConfigLimits& limits = {});

/// A value for `name` that a config or a command line may set: as Schema::check, and not a computed setting.
Result<Value> check_config_value(const Schema& schema, std::string_view name, const Json& value);
/// The same for KEY=VALUE, as Schema::check_text.
Result<Value> check_config_text(const Schema& schema, std::string_view name, std::string_view text);

}  // namespace footplate
