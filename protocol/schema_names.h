#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/schema.h"

namespace footplate {

// What people type for the names of a schema, and what to answer where there is no such name. Any thread.

/// NCCL_BUFFSIZE, nccl.NCCL_BUFFSIZE and nccl.buffsize: the variable that may be meant, and the same with the
/// group before it.
std::vector<std::string> variables_meant(std::string_view name);

/// Whether people type `name` for the setting: an alias, or one behind the setting's own group, task.ALIAS.
bool stands_for(const SettingSpec& spec, std::string_view name);

/// As Schema::unknown_setting and Schema::unknown_action.
std::string text_for_unknown_setting(const Schema& schema, std::string_view name);
std::string text_for_unknown_action(const Schema& schema, std::string_view name);

/// Of a word without quotes: "cosine is a value of sched.kind: write it in quotes, \"cosine\"". Empty where
/// it is no setting's choice.
std::string text_for_unquoted_choice(const Schema& schema, std::string_view name);

/// Of a global variable that is assigned or read: "it is called sched.base_lr or optim.lr_scale", where
/// `name` is an alias or the last part of settings. Empty where it is none.
std::string text_for_bare_setting(const Schema& schema, std::string_view name);

template <class Specs>
std::vector<std::string> names_of(const Specs& specs) {
  std::vector<std::string> names;
  for (const auto& spec : specs) names.push_back(spec.name);
  return names;
}

}  // namespace footplate
