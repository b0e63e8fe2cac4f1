#pragma once

#include <string>
#include <vector>

#include "console/report/run_history.h"
#include "protocol/schema.h"

namespace footplate::report {

/// A branch of a run, with the color that it has all over the page.
struct BranchView {
  std::size_t run = 0;
  std::string name;   ///< of the branch
  std::string label;  ///< in charts
  std::size_t color = 0;
};

/// Of all runs, in the order in which they began.
std::vector<BranchView> branch_views(const std::vector<RunHistory>& runs);
/// The color of a run's name: that of its newest branch.
std::size_t color_of_run(const std::vector<BranchView>& views, std::size_t run);

// Parts of the page; each is empty where there is nothing to say.

/// One row a branch: where it began, what was changed there and later, its last losses.
std::string branches_section(const std::vector<RunHistory>& runs, const std::vector<BranchView>& views,
                             const Schema& schema);

/// Of one run what differs from the defaults; of several first what differs between them.
std::string configuration_section(const std::vector<RunHistory>& runs, const std::vector<BranchView>& views,
                                  const Schema& schema);

/// One row a data set, where a run trains on several: how far it is, its last losses and metrics.
std::string data_sets_section(const std::vector<RunHistory>& runs, const std::vector<BranchView>& views);

}  // namespace footplate::report
