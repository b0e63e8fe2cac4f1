#pragma once

#include <string>

#include "protocol/order.h"
#include "protocol/schema.h"

namespace footplate::lua {

/// "log.every 50 -> 10, applied at step 12041 on 8/8 ranks"; what was only computed stands in parentheses:
/// "train.steps 2000 -> 4000 (optim.lr 0.00031 -> 0.00064), applied at step …". `report` is an order report
/// in state `applied`.
std::string confirmation(const Order& order, const Json& report, const Schema& schema);

}  // namespace footplate::lua
