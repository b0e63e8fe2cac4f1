#pragma once

#include <string>
#include <vector>

#include "console/report/run_history.h"
#include "protocol/schema.h"

namespace footplate::report {

/// The metrics that a report draws where none are asked for.
extern const std::vector<std::string> kUsualMetrics;

/// A page without scripts or anything from elsewhere: outcome, branches, curves with the changes on them,
/// configuration, where the time went, what was changed by whom, what failed. Several runs share the charts.
/// `schema`: for defaults and units; without it the configuration has what a config, a command line or an
/// order has set.
std::string page(const std::vector<RunHistory>& runs, const std::vector<std::string>& metrics,
                 const Schema& schema = {});

}  // namespace footplate::report
