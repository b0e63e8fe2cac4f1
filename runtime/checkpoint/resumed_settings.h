#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/settings.h"

namespace footplate {

/// Whether `source`, of a setting, names an order: it was changed live.
bool is_of_order(const std::string& source);

/// A setting that a start gives another value than the checkpoint has.
struct GivenOtherwise {
  std::string name;
  std::string saved, now;  ///< values, as a config has them
  std::string source;      ///< of `now`
};

/// The settings that a resumed run starts with, and what people should know about them.
struct ResumedSettings {
  Settings settings;
  std::vector<std::string> differences;  ///< one line each: "sched.base_lr 0.002 -> 0.001 (order 12 (ann),
                                         ///< kept by the checkpoint)"
  Json given = Json::object();           ///< what `configured` won: {name: value}, for a replay
  std::vector<GivenOtherwise> of_model =
      {};  ///< those of `given` that say which parameters and moments there are
};

/// Precedence on resume: command line > changes made live, kept in the checkpoint > config > default.
/// `configured` is what this start was given, `saved` what the checkpoint holds, `saved_in` the start that
/// wrote it (0: another run's). What the command line of that start or an earlier one gave is a config's
/// equal: the live changes came later. One of `configured` that an order has set (ckpt.load) counts for most.
ResumedSettings merge_resumed(const Schema& schema, const Settings& configured, const Settings& saved,
                              std::int64_t saved_in);

/// A checkpoint's refusal by a model. Where settings (ResumedSettings::of_model) are why: a usage error in
/// two lines that says which ones, what each side has, and what to type.
Error explain_misfit(Error refusal, const std::vector<GivenOtherwise>& of_model);

}  // namespace footplate
