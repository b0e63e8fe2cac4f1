#include "protocol/arrival.h"

namespace footplate {

Json Arrival::to_json() const {
  return {{"rank", rank},   {"pid", pid},         {"host", host},  {"stage", stage},
          {"waits", waits}, {"has_met", has_met}, {"place", place}};
}

Result<Arrival> Arrival::from_json(const Json& json) {
  const auto is = [&](const char* name, bool (Json::*of_type)() const noexcept) {
    const auto field = json.find(name);
    return field != json.end() && ((*field).*of_type)();
  };
  const bool whole = json.is_object() && is("rank", &Json::is_number_integer) &&
                     is("pid", &Json::is_number_integer) && is("host", &Json::is_string) &&
                     is("stage", &Json::is_number_integer) && is("waits", &Json::is_boolean) &&
                     is("has_met", &Json::is_boolean) && is("place", &Json::is_string);
  if (!whole) return fail(ErrorKind::failed, "not the arrival of a rank: " + json.dump().substr(0, 200));
  return Arrival{json["rank"].get<int>(),         json["pid"].get<std::int64_t>(),
                 json["host"].get<std::string>(), json["stage"].get<int>(),
                 json["waits"].get<bool>(),       json["has_met"].get<bool>(),
                 json["place"].get<std::string>()};
}

std::string arrival_file(int rank) {
  return "arrival-" + std::to_string(rank);
}

}  // namespace footplate
