#pragma once

#include <string>

#include "protocol/json.h"

namespace footplate {

/// The word that says which message it is (runtime/watch/messages.h), for traces; empty: it has none.
std::string word_of(const Json& message);

}  // namespace footplate
