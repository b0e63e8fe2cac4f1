#pragma once

#include <string>

#include "protocol/messages/order_report.h"
#include "protocol/schema.h"

namespace footplate::lua {

/// "log.every 50 -> 10, applied at step 12041 on 8/8 ranks"; what was only computed stands in parentheses:
/// "train.steps 2000 -> 4000 (optim.lr 0.00031 -> 0.00064), applied at step …". `report` is of an order that
/// was applied.
std::string confirmation(const Order& order, const OrderReport& report, const Schema& schema);

}  // namespace footplate::lua
