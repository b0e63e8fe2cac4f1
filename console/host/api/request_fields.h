#pragma once

#include <optional>
#include <string>

#include "console/host/api/operation.h"

namespace footplate::host {

/// The request's `timeout_s`; nothing: it has none.
std::optional<double> timeout_of(const Json& message);

/// A field that nothing reads was meant as one that counts: "at_stp" would order at once. `fields`: the
/// operation's own, with spaces between them.
Result<void> check_fields(const Json& message, const std::string& fields);

/// Leaves out the oldest, at the end of the list, until a line can have the rest.
void fit(Json& list);

/// Leaves a wait that answers the request once `ready` says what, or at the deadline with what `late` says.
void wait_for(Api& api, Request& request, Waits::Wait wait);

}  // namespace footplate::host
