#pragma once

#include <gtest/gtest.h>

#include <string>

#include "protocol/schema.h"

namespace footplate::test {

/// A schema of every type, small enough to see through.
inline Schema small_schema() {
  Schema schema;
  const auto add = [&](const char* name, Type type, Value value) -> SettingSpec& {
    SettingSpec spec;
    spec.name = name;
    spec.type = type;
    spec.default_value = std::move(value);
    spec.help = "help";
    schema.settings.push_back(std::move(spec));
    return schema.settings.back();
  };
  {
    SettingSpec& spec = add("log.every", Type::integer, std::int64_t{10});
    spec.unit = "steps";
    spec.range = {1, 1000, false};
    spec.aliases = {"log_interval"};
  }
  add("log.text", Type::string, std::string("hello"));
  {
    SettingSpec& spec = add("sched.base_lr", Type::number, 1e-3);
    spec.range = {0, 1, true};
    spec.aliases = {"lr"};
  }
  {
    SettingSpec& spec = add("optim.lr_scale", Type::number, 1.0);
    spec.range = {0, std::numeric_limits<double>::infinity(), false};
    spec.aliases = {"lr"};
  }
  {
    SettingSpec& spec = add("optim.lr", Type::number, 0.0);
    spec.knobs = {"sched.base_lr", "optim.lr_scale"};
  }
  add("sched.kind", Type::choice, std::string("cosine")).choices = {"cosine", "linear", "constant"};
  add("optim.betas", Type::numbers, std::vector<double>{0.9, 0.99}).range = {0, 0.999, false};
  add("run.time_limit", Type::number, 0.0).unit = "s";
  {
    SettingSpec& spec = add("model.width", Type::integer, std::int64_t{128});
    spec.applies = Applies::fixed;
  }
  add("model.heads", Type::integer, std::int64_t{4}).applies = Applies::fixed;
  add("log.verbose", Type::boolean, false);

  ActionSpec save;
  save.name = "ckpt.save";
  save.example = "ckpt.save{ tag = \"x\" }";
  ParamSpec tag;
  tag.name = "tag";
  tag.type = Type::string;
  ParamSpec copies;
  copies.name = "copies";
  copies.type = Type::integer;
  copies.range = {1, 3, false};
  copies.default_value = Value(std::int64_t{1});
  save.params = {tag, copies};
  schema.actions.push_back(save);
  ActionSpec pause;
  pause.name = "run.pause";
  pause.example = "run.pause()";
  schema.actions.push_back(pause);

  schema.constraints = {
      {Constraint::Kind::divides, "model.width", "model.heads", "every head gets an equal part"},
      {Constraint::Kind::at_most, "log.every", "model.width", "for the test"}};
  return schema;
}

/// The error's message, or "accepted".
template <class T>
std::string message(const Result<T>& result) {
  return result ? "accepted" : result.error().message;
}

}  // namespace footplate::test
