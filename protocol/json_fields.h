#pragma once

#include <cstdint>
#include <string>

#include "protocol/json.h"

namespace footplate {

// A field of an object that may lack it or hold another type: what others have written is never believed.
// None of these throws. Any thread.

/// Empty where there is no text.
std::string text_of(const Json& object, const char* field);

/// NaN where there is no number. Knows the tagged strings of number_to_json.
double number_of(const Json& object, const char* field);

/// False where there is no boolean.
bool flag_of(const Json& object, const char* field);

/// `otherwise` where there is no number, or one that a double doesn't hold exactly. Cuts off a fraction.
std::int64_t integer_of(const Json& object, const char* field, std::int64_t otherwise);

}  // namespace footplate
