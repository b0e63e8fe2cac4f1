#pragma once

#include <map>
#include <string>

#include "footplate/task.h"
#include "protocol/schema.h"
#include "protocol/settings.h"

namespace footplate {

/// The schema of a run of a plugin: footplate's own, without what only other tasks read (model.*,
/// data.corpus), and with the task's settings and actions, task.NAME. Error (usage): a declaration that can't
/// be one, with the name, what is wrong and what is allowed. `task`: how messages name it.
Result<Schema> with_declared(Schema schema, const v1::Declaration& declaration, const std::string& task);

/// How a declared name is called by people.
std::string declared_name(const std::string& name);
/// Of these settings the task's own, task.NAME, by their full names.
std::map<std::string, Value> declared_values(const Settings& settings);
/// The setting of a data set's share: data.share.NAME.
std::string share_setting(const std::string& set);

}  // namespace footplate
