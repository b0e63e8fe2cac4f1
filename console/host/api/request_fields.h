#pragma once

#include <string>
#include <vector>

#include "console/host/api/operation.h"

namespace footplate::host {

/// A field that nothing reads was meant as one that counts: "at_stp" would order at once. `fields`: the
/// operation's own, with spaces between them.
Result<void> check_fields(const std::string& operation, const Json& line, const std::string& fields);

/// A list as it leaves the process.
template <class T>
Json list_of(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(to_json(item));
  return list;
}

/// Leaves out the oldest, at the end of the list, until a line can have the rest.
void fit(Json& list);

/// Leaves a wait of the request's client.
void leave(Api& api, const Request& request, Waits::Wait wait);

}  // namespace footplate::host
