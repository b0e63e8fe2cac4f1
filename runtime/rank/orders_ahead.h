#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "protocol/schema.h"
#include "runtime/orders/forecast.h"

namespace footplate {

/// Orders that are committed before training starts, each for its step: what a crash undid, the journal of a
/// run that is replayed, and what was agreed for a later step when the checkpoint was written. `footplate
/// run` and `footplate replay` leave the first two in orders-K.json of the run directory
/// (console/launch/run_dir/order_history.h), the last is in the manifest; every rank reads the same, so
/// nothing has to be agreed on.
struct OrdersAhead {
  std::vector<Committed> orders;  ///< in the order in which they were applied once
  std::vector<std::string> said;  ///< one line each, for people: what is scheduled, what is left out and why
  std::uint64_t last_id = 0;      ///< the largest number; 0: none
};

/// `held` is the last order that the checkpoint holds which this start goes on from at `step`, in the order
/// of application (that is not the order of numbers: an order for a later step is applied after younger
/// ones). It and all before it are left out, and so are those that change nothing. An order that the schema
/// no longer allows is left out and said. `kept`: the manifest's; what the file tells of one counts for more,
/// and those of rules are left out, as the rules come again by themselves. Up to step `left`, which the run
/// went back from (ckpt.load), they only set what they set: what they called led there. No file: only those.
/// Error (usage): the file can't be read.
Result<OrdersAhead> read_orders_ahead(const std::filesystem::path& file, const Schema& schema,
                                      const Json& kept, std::uint64_t held, std::int64_t step,
                                      std::int64_t left = 0);

}  // namespace footplate
