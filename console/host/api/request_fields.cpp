#include "console/host/api/request_fields.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <vector>

namespace footplate::host {
namespace {

constexpr std::size_t kNameShown = 64;  ///< of a field that there isn't

}  // namespace

Result<void> check_fields(const std::string& operation, const Json& line, const std::string& fields) {
  std::istringstream words("id op " + fields);
  const std::vector<std::string> known{std::istream_iterator<std::string>(words), {}};
  for (const auto& [name, value] : line.items()) {
    if (std::ranges::find(known, name) != known.end()) {
      if (!value.is_null() || name == "id") continue;
      return fail(ErrorKind::usage, "field '" + name + "' is null; leave it out, or give it a value");
    }
    const std::string near = nearest(name, known);
    return fail(ErrorKind::usage, "'" + operation + "' has no field '" + name.substr(0, kNameShown) + "'" +
                                      (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                      "; fields: id op" + (fields.empty() ? "" : " ") + fields);
  }
  return {};
}

void fit(Json& list) {
  while (to_line(list).size() > kMaxFrameBytes / 2)
    list.erase(list.end() - 1 - static_cast<std::ptrdiff_t>(list.size() / 4), list.end());
}

void leave(Api& api, const Request& request, Waits::Wait wait) {
  wait.owner = request.client.id;
  api.host.waits.add(std::move(wait), api.host.now);
}

}  // namespace footplate::host
