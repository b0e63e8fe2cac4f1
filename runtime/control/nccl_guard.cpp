#include "runtime/control/nccl_guard.h"

#include "protocol/variables.h"

namespace footplate {

Result<void> NcclGuard::prepare(const Order& order, const Settings& after) {
  for (const Change& change : order.changes) {
    if (!change.name.starts_with("nccl.")) continue;
    if (!has_communicator_)
      return fail(ErrorKind::refused,
                  change.name +
                      " would change nothing: this run trains on the processors (run.device) and "
                      "has no NCCL communicator. Set it in the config of a run on devices");
    if (at_start_.has(change.name) && is_from_environment(at_start_.source(change.name)))
      return fail(ErrorKind::refused,
                  change.name +
                      " would change nothing: its variable in the environment of footplate run "
                      "overrides it at every start. Unset that, and go on with --resume auto");
  }
  return inner_.prepare(order, after);
}

}  // namespace footplate
