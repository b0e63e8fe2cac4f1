#include <gtest/gtest.h>

#include "protocol/messages/fields.h"
#include "protocol/messages/link_messages.h"
#include "protocol/messages/rules_and_jobs.h"
#include "protocol/messages/session_messages.h"

namespace footplate {
namespace {

/// What is written is read again as the same.
template <class T>
void expect_same(const Json& json) {
  const auto read = read_as<T>(json);
  ASSERT_TRUE(read) << read.error().message << " in " << json;
  EXPECT_EQ(to_json(*read), json);
}

TEST(Messages, AnOrderReportKeepsItsFields) {
  expect_same<OrderReport>({{"state", "accepted"}, {"id", 7}, {"ref", "c1-1"}});
  expect_same<OrderReport>({{"state", "committed"}, {"id", 7}, {"ref", "c1-1"}, {"step", 812}});
  expect_same<OrderReport>({{"state", "applied"},
                            {"id", 7},
                            {"ref", "c1-1"},
                            {"applied",
                             {{"id", 7},
                              {"step", 812},
                              {"ranks", 2},
                              {"world_size", 2},
                              {"digest", "ab"},
                              {"moved", {{{"name", "log.every"}, {"before", 50}, {"after", 10}}}}}},
                            {"calls", {{{"call", 0}, {"action", "ckpt.save"}}}}});
}

TEST(Messages, AnAppliedReportHasCallsAlsoWhereThereAreNone) {
  OrderReport report;
  report.state = OrderState::applied;
  report.applied = Applied{};
  EXPECT_EQ(to_json(report)["calls"], Json::array());
}

TEST(Messages, AnEmptyOptionalIsLeftOutAndANullOneIsEmpty) {
  OrderReport report;
  report.id = 3;
  EXPECT_FALSE(to_json(report).contains("step"));
  const auto read = read_as<OrderReport>({{"state", "accepted"}, {"step", nullptr}});
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->step);
}

TEST(Messages, AWrongTypeNamesTheField) {
  const auto number = read_as<OrderReport>({{"state", "accepted"}, {"id", "seven"}});
  ASSERT_FALSE(number);
  EXPECT_EQ(number.error().message, "field 'id' has to be a whole number");
  const auto negative = read_as<OrderReport>({{"state", "accepted"}, {"id", -1}});
  ASSERT_FALSE(negative);
  EXPECT_EQ(negative.error().message, "field 'id' has to be a whole number in range");
  EXPECT_EQ(read_as<OrderReport>({{"id", 5.0}})->id, 5U);
  EXPECT_FALSE(read_as<OrderReport>({{"id", 5.5}}));
  EXPECT_FALSE(read_as<OrderReport>({{"id", -5.0}}));
  EXPECT_FALSE(read_as<OrderReport>({{"id", 1e300}}));
  const auto boolean = read_as<CallReport>({{"order", true}});
  ASSERT_FALSE(boolean);
  EXPECT_FALSE(read_as<OrderReport>(Json::array()));
}

TEST(Messages, AWordThatThereIsNotNamesThoseThatThereAre) {
  const auto read = read_as<CallReport>({{"state", "finished"}});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "field 'state' has to be one of running, done, failed, cancelled");
}

TEST(Messages, AStatusHasNullForWhatIsNotKnown) {
  RunStatus status;
  status.loss = 2.5;
  const Json json = to_json(status);
  EXPECT_EQ(json["loss"], 2.5);
  EXPECT_TRUE(json["eval_loss"].is_null());
  expect_same<RunStatus>(json);
}

TEST(Messages, ALossThatIsNoNumberSurvives) {
  EvaluationResult result;
  result.loss = std::numeric_limits<double>::quiet_NaN();
  const auto read = read_as<EvaluationResult>(to_json(result));
  ASSERT_TRUE(read && read->loss);
  EXPECT_TRUE(std::isnan(*read->loss));
}

TEST(Messages, AnEventHasTheDataOfItsTopic) {
  const Json line = {{"type", "event"},
                     {"topic", "warn"},
                     {"time", "2026-01-01T00:00:00Z"},
                     {"data", {{"kind", "sync"}, {"text", "slow"}}}};
  const auto event = read_as<Event>(line);
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(topic_of(event->data), Topic::warn);
  EXPECT_EQ(std::get<Warning>(event->data).kind, WarningKind::sync);
  EXPECT_EQ(to_json(*event), line);
}

TEST(Messages, EveryTopicIsThatOfItsData) {
  for (const auto& [topic, word] : EnumWords<Topic>::kAll) {
    const auto data = event_data_from_json(topic, Json::object());
    ASSERT_TRUE(data) << word << ": " << data.error().message;
    EXPECT_EQ(topic_of(*data), topic) << word;
  }
}

TEST(Messages, LinesOfTheConsoleLinkAreReadByTheirType) {
  const auto said = console_message_from_json({{"type", "cancel"}, {"evaluation", true}});
  ASSERT_TRUE(said);
  EXPECT_TRUE(std::holds_alternative<CancelEvaluation>(*said));
  const auto bad = console_message_from_json({{"type", "publish"}, {"topic", "order"}});
  EXPECT_FALSE(bad);
  EXPECT_FALSE(console_message_from_json({{"type", "nonsense"}}));
  SubmitOrder submit{"c1-1", Order{}, 0};
  submit.order->changes.push_back({"log.every", Value(std::int64_t{5}), std::nullopt});
  const auto order = console_message_from_json(to_json(ConsoleMessage(submit)));
  ASSERT_TRUE(order);
  EXPECT_EQ(std::get<SubmitOrder>(*order).order->changes.at(0).name, "log.every");
}

TEST(Messages, AnOrderThatIsMalformedKeepsItsRef) {
  const auto read =
      console_message_from_json({{"type", "order"}, {"ref", "c1-2"}, {"order", {{"changes", 5}}}});
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<SubmitOrder>(*read).ref, "c1-2");
  EXPECT_FALSE(std::get<SubmitOrder>(*read).order);
}

TEST(Messages, ARuleWithoutWhatItWaitsForIsRefused) {
  EXPECT_FALSE(read_as<RuleSpec>({{"kind", "every"}}));
  EXPECT_FALSE(read_as<RuleSpec>({{"kind", "after"}}));
  EXPECT_TRUE(read_as<RuleSpec>({{"kind", "after"}, {"seconds", 5}}));
  EXPECT_TRUE(read_as<RuleSpec>({{"kind", "stop_when"}}));
}

TEST(Messages, LinesOfASessionAreReadByTheirType) {
  const auto answer = to_session_from_json(
      {{"type", "answer"}, {"id", 3}, {"error", {{"kind", "refused"}, {"message", "no"}}}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<SessionAnswer>(*answer).value.error().kind, ErrorKind::refused);
  const Json result = {{"type", "result"}, {"id", "a"}, {"value", {{"text", "5"}, {"value", 5}}}};
  const auto ended = from_session_from_json(result);
  ASSERT_TRUE(ended);
  EXPECT_EQ(to_json(*ended), result);
  const Json error = {
      {"type", "error"}, {"id", 1}, {"error", {{"kind", "script"}, {"message", "x"}, {"line", 2}}}};
  const auto failed = from_session_from_json(error);
  ASSERT_TRUE(failed);
  EXPECT_EQ(to_json(*failed), error);
}

}  // namespace
}  // namespace footplate
