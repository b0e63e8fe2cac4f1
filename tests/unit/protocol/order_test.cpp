#include "protocol/order.h"

#include <limits>

#include "fixture.h"

namespace footplate {
namespace {

using test::message;

Order full_order() {
  Order order;
  order.id = 18446744073709551615u;
  order.session = "s3";
  order.user = "ann";
  order.source = "log.every = 10\n-- \"ü\"";
  order.at_step = 20000;
  order.changes = {{"log.every", std::int64_t{10}, Value(std::int64_t{50})},
                   {"sched.base_lr", 0.1, std::nullopt},
                   {"sched.kind", std::string("linear"), std::nullopt},
                   {"x.flag", true, std::nullopt},
                   {"optim.betas", std::vector<double>{0.9, 0.95}, std::nullopt}};
  order.calls = {{"ckpt.save", {{"tag", "x"}}}, {"eval.now", Json::object()}};
  return order;
}

TEST(OrderJson, RoundTripAsTextAndAsCbor) {
  const Json json = to_json(full_order());
  for (const Json& sent :
       {*parse_line(to_line(json)), *from_cbor(to_cbor(json).data(), to_cbor(json).size())}) {
    const auto order = order_from_json(sent);
    ASSERT_TRUE(order) << message(order);
    EXPECT_EQ(to_json(*order), json);
    EXPECT_EQ(order->changes[0].value, Value(std::int64_t{10}));
    EXPECT_EQ(order->changes[0].expect, Value(std::int64_t{50}));
    EXPECT_EQ(order->changes[1].value, Value(0.1));
    EXPECT_EQ(order->at_step, 20000);
  }
}

TEST(OrderJson, LeftOutFieldsAreEmpty) {
  const auto order = order_from_json(Json::object());
  ASSERT_TRUE(order);
  EXPECT_EQ(order->id, 0u);
  EXPECT_FALSE(order->at_step);
  EXPECT_TRUE(order->changes.empty());
  EXPECT_TRUE(order->calls.empty());
}

TEST(OrderJson, WholeNumbersNeedntComeFromText) {
  EXPECT_EQ(order_from_json({{"id", 5}, {"at_step", 7u}})->id, 5u);  // JSON made in C++ has signed integers
}

TEST(OrderJson, SpecialNumbersStayWhatTheyAre) {
  Order order;
  order.changes = {{"a", std::numeric_limits<double>::infinity(), std::nullopt}};
  // Tagged: it arrives as the string "@inf", which every check of a number refuses with words.
  EXPECT_EQ(order_from_json(to_json(order))->changes[0].value, Value(std::string("@inf")));
}

TEST(OrderJson, WrongTypesAreRefusedByName) {
  const auto refusal = [](const char* text) { return message(order_from_json(Json::parse(text))); };
  EXPECT_EQ(refusal("[]"), "an order has to be an object");
  EXPECT_EQ(refusal(R"({"id":"x"})"), "field 'id' has the wrong type");
  EXPECT_EQ(refusal(R"({"id":-1})"), "field 'id' has the wrong type");
  EXPECT_EQ(refusal(R"({"id":1.5})"), "field 'id' has the wrong type");
  EXPECT_EQ(refusal(R"({"id":true})"), "field 'id' has the wrong type");
  EXPECT_EQ(refusal(R"({"user":7})"), "field 'user' has the wrong type");
  EXPECT_EQ(refusal(R"({"at_step":"x"})"), "field 'at_step' has to be a whole number");
  EXPECT_EQ(refusal(R"({"at_step":1.5})"), "field 'at_step' has to be a whole number");
  EXPECT_EQ(refusal(R"({"at_step":18446744073709551615})"), "field 'at_step' has to be a whole number");
  EXPECT_EQ(refusal(R"({"changes":{}})"), "fields 'changes' and 'calls' have to be lists");
  EXPECT_EQ(refusal(R"({"calls":1})"), "fields 'changes' and 'calls' have to be lists");
  EXPECT_EQ(refusal(R"({"changes":[1]})"), "a change has to have a name and a value");
  EXPECT_EQ(refusal(R"({"changes":[{"name":"a"}]})"), "a change has to have a name and a value");
  EXPECT_EQ(refusal(R"({"changes":[{"name":1,"value":1}]})"), "a change has to have a name and a value");
  EXPECT_EQ(refusal(R"({"changes":[{"name":"a","value":null}]})"),
            "a value has to be a boolean, a number, a string or a list of numbers");
  EXPECT_EQ(refusal(R"({"changes":[{"name":"a","value":{}}]})"),
            "a value has to be a boolean, a number, a string or a list of numbers");
  EXPECT_EQ(refusal(R"({"changes":[{"name":"a","value":["x"]}]})"), "expects a number, got the string \"x\"");
  EXPECT_EQ(refusal(R"({"changes":[{"name":"a","value":1,"expect":{}}]})"),
            "a value has to be a boolean, a number, a string or a list of numbers");
  EXPECT_EQ(refusal(R"({"calls":[{}]})"), "a call has to name its action");
}

TEST(CallText, IsAsPeopleWriteIt) {
  const auto load = [](Json arguments) { return shown_text({"ckpt.load", std::move(arguments)}); };
  EXPECT_EQ(
      load({{"ref", "-500"}, {"set", R"({"optim.betas":[0.9,0.95],"optim.lr_scale":0.5,"log.every":5})"}}),
      "ckpt.load{ ref = \"-500\", set = { log = { every = 5 }, optim = { betas = {0.9, 0.95}, lr_scale = "
      "0.5 } } }");
  EXPECT_EQ(load({{"ref", "100"}, {"skip_steps", 30}, {"branch", ""}}),
            "ckpt.load{ ref = \"100\", skip = { steps = 30 } }");
  EXPECT_EQ(load({{"set", R"({"data.share.a-b":2})"}}),
            "ckpt.load{ set = { data = { share = { [\"a-b\"] = 2 } } } }");
  for (const char* text : {"no JSON", "[1]", R"({"a":1,"a.b":2})"})
    EXPECT_EQ(load({{"set", text}}), "ckpt.load{ set = " + to_text(Value(text)) + " }");
  EXPECT_EQ(load(Json::object()), "ckpt.load()");
  EXPECT_EQ(shown_text({"run.store", {{"name", "a b"}, {"value", "5"}}}), "store[\"a b\"] = 5");
}

TEST(AppliedJson, RoundTrip) {
  const Applied applied{7,
                        12041,
                        8,
                        8,
                        "00ff00ff00ff00ff",
                        {{"log.every", std::int64_t{50}, std::int64_t{10}}, {"optim.lr", 0.1, 0.2}},
                        1.9};
  const auto again = applied_from_json(*parse_line(to_line(to_json(applied))));
  ASSERT_TRUE(again) << message(again);
  EXPECT_EQ(to_json(*again), to_json(applied));
  EXPECT_EQ(again->moved[1].after, Value(0.2));
  EXPECT_EQ(again->renewed_s, 1.9);
}

TEST(AppliedJson, WrongTypesAreRefused) {
  for (const char* text : {"1", R"({"step":"x"})", R"({"ranks":[]})", R"({"digest":1})", R"({"moved":[1]})",
                           R"({"renewed_s":"x"})", R"({"moved":[{"name":"a","before":1}]})",
                           R"({"moved":[{"name":"a","before":{},"after":1}]})"})
    EXPECT_FALSE(applied_from_json(Json::parse(text))) << text;
}

}  // namespace
}  // namespace footplate
