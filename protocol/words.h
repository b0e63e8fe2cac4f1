#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace footplate {

/// "a, b, c": the items with `between` between two of them; empty for none.
std::string join(const std::vector<std::string>& items, std::string_view between = ", ");

}  // namespace footplate
