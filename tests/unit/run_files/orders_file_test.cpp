#include "run_files/orders_file.h"

#include "tests/unit/run_files/folder_fixture.h"

namespace footplate {
namespace {

class OrdersFileTest : public test::FolderTest {};

TEST_F(OrdersFileTest, IsReadAsItWasWritten) {
  Order order;
  order.id = 3;
  order.at_step = 40;
  order.changes.push_back({"log.every", Value(std::int64_t{5}), std::nullopt});
  const OrdersFile file{OrdersWhy::replay, {{order, false}, {order, true}}};
  ASSERT_TRUE(write_orders_file(folder_, 2, file));
  const auto read = read_orders_file(folder_, 2);
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(file));
  EXPECT_TRUE(read->orders[1].left_out);
  EXPECT_FALSE(read_orders_file(folder_, 1));
}

TEST_F(OrdersFileTest, AnOrderThatCannotBeReadHidesNoOther) {
  write("orders-1.json", R"({"why": 5, "orders": [7, {"id": -1}, {"id": 2, "left_out": true}]})");
  const auto read = read_orders_file(folder_, 1);
  ASSERT_TRUE(read && read->orders.size() == 1);
  EXPECT_EQ(read->orders[0].order.id, 2U);
}

}  // namespace
}  // namespace footplate
