#include "protocol/json_fields.h"

#include <cmath>

namespace footplate {

std::string text_of(const Json& object, const char* field) {
  if (!object.is_object()) return {};
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

double number_of(const Json& object, const char* field) {
  if (!object.is_object()) return NAN;
  const auto found = object.find(field);
  return found == object.end() ? NAN : number_from_json(*found).value_or(NAN);
}

bool flag_of(const Json& object, const char* field) {
  if (!object.is_object()) return false;
  const auto found = object.find(field);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

std::int64_t integer_of(const Json& object, const char* field, std::int64_t otherwise) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: beyond it a double need not be an integer
  const double value = number_of(object, field);
  return std::abs(value) <= kExact ? static_cast<std::int64_t>(value) : otherwise;  // false for NaN
}

}  // namespace footplate
