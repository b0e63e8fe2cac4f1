#pragma once

#include <cstdint>
#include <vector>

#include "protocol/mutex.h"
#include "runtime/base/condition.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/ledger.h"

namespace footplate {

/// What a rank brings to a meeting.
struct SimAttendance {
  Collective kind = Collective::barrier;
  Buffer send;
  Buffer receive;  ///< of an all_gather: `send` where it is of shares
  ReduceOp op = ReduceOp::sum;
  int root = 0;

  bool in_place() const { return receive.data != nullptr && receive.data == send.data; }
};

/// Where the communication threads of all ranks come together; the last to arrive does the work.
class SimMeeting {
 public:
  explicit SimMeeting(int world_size) : ranks_(static_cast<std::size_t>(world_size)) {}

  /// Waits for the others. Errors: they have called something else, or fail_all().
  Result<void> attend(int rank, const SimAttendance& attendance);

  /// From now on every operation fails, those under way included.
  void fail_all(Error error);

 private:
  Mutex mutex_;
  Condition met_;
  std::vector<SimAttendance> ranks_ GUARDED_BY(mutex_);
  int arrived_ GUARDED_BY(mutex_) = 0;
  std::uint64_t round_ GUARDED_BY(mutex_) = 0;
  Result<void> outcome_ GUARDED_BY(mutex_);  ///< an error stays
};

}  // namespace footplate
