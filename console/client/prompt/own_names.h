#pragma once

#include <set>
#include <string>

namespace footplate {

/// Adds the global names that `chunk` assigns: x in "x = 1", f in "function f() …". By its text alone.
void add_own_names(const std::string& chunk, std::set<std::string>& names);

}  // namespace footplate
