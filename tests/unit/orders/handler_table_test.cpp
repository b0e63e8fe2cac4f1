#include "runtime/orders/handler_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Says what it is asked, and answers as the test says.
class Probe final : public Steerable {
 public:
  Probe(std::string name, std::vector<std::string_view> actions, std::vector<std::string>& asked)
      : name_(std::move(name)), actions_(std::move(actions)), asked_(asked) {}

  std::vector<std::string_view> actions() const override { return actions_; }

  Result<void> prepare(const Order&, const Settings&) override {
    asked_.push_back(name_);
    return prepared;
  }
  Result<std::optional<double>> renew(const Settings&, Renewal, std::int64_t) override {
    asked_.push_back(name_);
    return renewed;
  }
  std::vector<Moved> settings_changed(const Settings&, std::int64_t) override {
    return {{name_, std::int64_t{1}, std::int64_t{2}}};
  }
  Result<CallResult> call(const Call& call, std::int64_t step) override {
    return SaveResult{.path = name_ + " " + call.action, .step = step, .tag = {}, .reason = {}};
  }
  Result<void> rejoin(const Rejoin&) override {
    asked_.push_back(name_);
    return level;
  }

  Result<void> prepared;
  Result<std::optional<double>> renewed;
  Result<void> level;

 private:
  std::string name_;
  std::vector<std::string_view> actions_;
  std::vector<std::string>& asked_;
};

class HandlerTableTest : public ::testing::Test {
 protected:
  std::vector<std::string> asked_;
  Probe first_{"first", {"one.a", "one.b"}, asked_}, second_{"second", {"two"}, asked_};
  HandlerTable table_{{&first_, &second_}};
};

TEST_F(HandlerTableTest, AllHaveTheirSayAndTheFirstRefusalCounts) {
  EXPECT_TRUE(table_.prepare({}, {}));
  EXPECT_THAT(asked_, ElementsAre("first", "second"));
  asked_.clear();
  first_.prepared = fail(ErrorKind::refused, "no");
  second_.prepared = fail(ErrorKind::refused, "not either");
  EXPECT_EQ(table_.prepare({}, {}).error().message, "no");
  EXPECT_THAT(asked_, ElementsAre("first"));
}

TEST_F(HandlerTableTest, ACallGoesToTheHandlerOfItsAction) {
  EXPECT_EQ(std::get<SaveResult>(*table_.call({"one.b", {}}, 7)).path, "first one.b");
  EXPECT_EQ(std::get<SaveResult>(*table_.call({"two", {}}, 7)).path, "second two");
  EXPECT_THAT(table_.call({"three", {}}, 7).error().message, HasSubstr("three"));
}

TEST_F(HandlerTableTest, WhatMovedOfAllIsToldInTheirOrder) {
  const auto moved = table_.settings_changed({}, 3);
  ASSERT_EQ(moved.size(), 2U);
  EXPECT_EQ(moved[0].name, "first");
  EXPECT_EQ(moved[1].name, "second");
}

TEST_F(HandlerTableTest, AllMakeNewWhatIsTheirsAndTheFirstErrorEndsIt) {
  EXPECT_EQ(*table_.renew({}, {}, 3), std::nullopt);
  EXPECT_THAT(asked_, ElementsAre("first", "second"));
  asked_.clear();
  first_.renewed = 0.5;
  EXPECT_EQ(*table_.renew({}, {}, 3), 0.5);
  first_.renewed = fail(ErrorKind::lost, "rank 1 is lost");
  EXPECT_FALSE(table_.renew({}, {}, 3));
  EXPECT_THAT(asked_, ElementsAre("first", "second", "first"));
}

TEST_F(HandlerTableTest, AllRejoinTheLastFirst) {
  second_.level = fail(ErrorKind::lost, "rank 1 is lost");
  EXPECT_EQ(table_.rejoin({}).error().message, "rank 1 is lost");
  EXPECT_THAT(asked_, ElementsAre("second", "first"));
}

}  // namespace
}  // namespace footplate
