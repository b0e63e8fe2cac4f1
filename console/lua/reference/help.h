#pragma once

#include <string>

#include "console/lua/reference/function_docs.h"
#include "protocol/schema.h"
#include "protocol/settings.h"

namespace footplate {

/// The text of help(name): a setting with its value, an action, a group or a function; everything there is
/// where `name` is empty. An unknown name is answered with the nearest one.
std::string help_text(const Schema& schema, const Settings& settings, FunctionDocs functions,
                      const std::string& name);

}  // namespace footplate
