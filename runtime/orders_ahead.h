#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "protocol/schema.h"
#include "runtime/control/forecast.h"

namespace footplate {

/// Orders that are committed before training starts, each for its step: what a crash undid, or the journal of
/// a run that is replayed. `footplate run` and `footplate replay` leave them in orders-K.json of the run
/// directory (console/launch/history.h); every rank reads the same file, so nothing has to be agreed on.
struct OrdersAhead {
  std::vector<Committed> orders;  ///< in the order in which they were applied once
  std::vector<std::string> said;  ///< one line each, for people: what is scheduled, what is left out and why
  std::uint64_t last_id = 0;      ///< the largest number; 0: none
};

/// `held` is the last order that the checkpoint holds which this start goes on from at `step`, in the order
/// of application (that is not the order of numbers: an order for a later step is applied after younger
/// ones). It and all before it are left out, and so are those that change nothing. An order that the schema
/// no longer allows is left out and said. No file: no orders. Error (usage): the file can't be read.
Result<OrdersAhead> read_orders_ahead(const std::filesystem::path& file, const Schema& schema,
                                      std::uint64_t held, std::int64_t step);

}  // namespace footplate
