#pragma once

#include <string>
#include <string_view>

#include "console/lua/reference/function_docs.h"
#include "protocol/schema.h"
#include "protocol/settings.h"

namespace footplate {

/// The name that stands for everything there is.
inline constexpr std::string_view kHelpOfAll = "all";

/// The text of help(name): a setting with its value, an action, a group or a function. Where `name` is empty,
/// what people want to do first, in less than 24 rows of 80 columns; "all": everything there is. An unknown
/// name is answered with the nearest one, or with what has it in its name or help.
std::string help_text(const Schema& schema, const Settings& settings, FunctionDocs functions,
                      const std::string& name);

}  // namespace footplate
