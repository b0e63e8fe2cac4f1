#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/settings.h"

namespace footplate {

// A task is edited between two starts of a run: what an earlier one wrote may have settings of the task's own
// (task.NAME, data.share.SET, a model.NAME that it used) that it doesn't declare any more. An earlier version
// of footplate may have written one that this one hasn't. Any thread.

struct GoneSetting {
  std::string name;  ///< "task.noise"
  Json value;
  std::string source;  ///< as of a Setting

  bool was_default() const { return source == "default"; }
};

/// Whether `name` is there for some tasks, a setting or an action, or was in earlier versions, and `schema`
/// has none of that name.
bool is_gone(const Schema& schema, std::string_view name);

/// Settings::from_json() of what an earlier start wrote. What is gone is left out, and added to `gone` where
/// that isn't null.
Result<Settings> earlier_settings_from_json(Json json, const Schema& schema,
                                            std::vector<GoneSetting>* gone = nullptr);

/// "task.noise is left out: the task doesn't declare it any more. It was 0.3 (order 2 (ann))": with what may
/// have its name now, where the value was not the default.
std::string left_out_text(const Schema& schema, const GoneSetting& gone);

}  // namespace footplate
