#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "protocol/messages/enum_words.h"

namespace footplate {

/// What is wrong with a collective: Warning::verdict.
enum class CollectiveVerdict {
  different,  ///< ranks have called different ones
  missing,    ///< it waits for ranks that haven't come to it
  slow,       ///< all are in it
  over,       ///< it has ended after all
};
template <>
struct EnumWords<CollectiveVerdict> {
  static constexpr std::array kAll{
      std::pair{CollectiveVerdict::different, std::string_view("different")},
      std::pair{CollectiveVerdict::missing, std::string_view("missing")},
      std::pair{CollectiveVerdict::slow, std::string_view("slow")},
      std::pair{CollectiveVerdict::over, std::string_view("over")},
  };
};

}  // namespace footplate
