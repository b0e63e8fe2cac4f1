#pragma once

#include <string>
#include <vector>

#include "console/report/run_history.h"

namespace footplate::report {

/// The metrics that a report draws where none are asked for.
extern const std::vector<std::string> kUsualMetrics;

/// A page without scripts or anything from elsewhere: outcome, curves with the changes on them, where the
/// time went, what was changed by whom, what failed. Several runs share the charts.
std::string page(const std::vector<RunHistory>& runs, const std::vector<std::string>& metrics);

}  // namespace footplate::report
