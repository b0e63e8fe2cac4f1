#include "console/lua/core/table_options.h"

#include <cmath>

#include "console/lua/core/bind.h"

namespace footplate::lua {

const Json* TableOptions::find(const char* name) const {
  const auto found = table_.is_object() ? table_.find(name) : table_.end();
  return found == table_.end() || found->is_null() ? nullptr : &*found;
}

void TableOptions::refuse(const std::string& name, const std::string& allowed) const {
  throw ScriptError((function_.empty() ? "" : function_ + ": ") + name + " " + allowed);
}

std::optional<bool> TableOptions::flag(const char* name) const {
  const Json* found = find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_boolean()) refuse(name, "is true or false");
  return found->get<bool>();
}

std::optional<std::string> TableOptions::text(const char* name, const std::string& allowed) const {
  const Json* found = find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) refuse(name, allowed);
  return found->get<std::string>();
}

std::optional<double> TableOptions::number(const char* name, const Bounds& bounds,
                                           const std::string& allowed) const {
  const Json* found = find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number()) refuse(name, allowed);
  const double number = found->get<double>();
  const bool above = bounds.without_least ? number > bounds.least : number >= bounds.least;
  const bool below = bounds.without_most ? number < bounds.most : number <= bounds.most;
  if (!above || !below || (bounds.whole && std::floor(number) != number)) refuse(name, allowed);
  return number;
}

}  // namespace footplate::lua
