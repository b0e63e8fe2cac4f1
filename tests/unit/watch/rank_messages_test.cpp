// Messages between ranks as JSON: what is written is read back, and what can't be read is an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "runtime/watch/ledger_answer.h"
#include "runtime/watch/messages.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

Json written(const std::variant<message::ToRanks, message::ToRankZero>& message) {
  return std::visit([](const auto& one) { return to_json(one); }, message);
}

/// Reads it, after a way through CBOR, and writes what was read.
Json again(const Json& json) {
  const auto read = message::decoded(to_cbor(json));
  EXPECT_TRUE(read) << json << ": " << read.error().message;
  return read ? written(*read) : Json();
}

std::string error_of(const Json& json) {
  const auto read = message::from_json(json);
  return read ? "none" : read.error().message;
}

TEST(RankMessages, AreReadAsTheyWereWritten) {
  const Json order = to_json(Order{});
  const Json commit = {{"ticket", 7}, {"order", order}, {"step", 30}, {"targeted", true}};
  for (const Json& json : std::initializer_list<Json>{
           {{"t", "prepare"}, {"ticket", 3}, {"order", order}},
           {{"t", "prepare"}, {"ticket", 3}, {"withdraws", 12}},
           {{"t", "fence"}, {"ticket", 3}},
           {{"t", "commit"}, {"ticket", 3}, {"step", 12}, {"targeted", false}},
           {{"t", "commit"}, {"ticket", 3}, {"withdraws", 12}},
           {{"t", "abort"}, {"ticket", 3}},
           {{"t", "cancel"}, {"order", 12}, {"call", 1}},
           {{"t", "cancel"}, {"evaluation", 100}},
           {{"t", "finish"}},
           {{"t", "remedy"}, {"ticket", 1}, {"stop", true}, {"text", "it hangs"}},
           {{"t", "die"}, {"rank", 1}, {"pid", 500}, {"host", "here"}},
           {{"t", "met"}, {"ticket", 1}, {"error", "rank 1 didn't come"}},
           {{"t", "inquire"}, {"what", "stacks"}},
           {{"t", "rejoin"}, {"generation", 2}, {"impossible", "nobody is whole"}},
           {{"t", "rejoin"},    {"generation", 2},   {"step", 30},   {"source", 1},
            {"behind", {0, 1}}, {"shared", true},    {"left", 41},   {"checkpoint", "step-30"},
            {"paused", false},  {"finished", false}, {"save", true}, {"tag", "kept"},
            {"sequence", 40},   {"commits", 3},      {"begun", 1},   {"applied", 4},
            {"ticket", 7},      {"order", 9},        {"refused", 2}, {"refusal", "no"}},
           {{"t", "prepared"}, {"ticket", 3}, {"error", "rank 1: no"}},
           {{"t", "fenced"}, {"ticket", 3}, {"step", 12}},
           {{"t", "applied"}, {"order", 12}, {"step", 5}, {"digest", "d"}, {"renewed_s", 0.5}},
           {{"t", "call"}, {"order", 12}, {"call", 0}, {"action", "eval.now"}, {"state", "running"}},
           {{"t", "end"}, {"step", 20}, {"commits", 1}},
           {{"t", "hash"}, {"step", 20}, {"hash", 0xfedcba9876543210U}},
           {{"t", "hash"},
            {"step", 20},
            {"hash", 7},
            {"agreed", 10},
            {"tensors", {{{"name", "model/w"}, {"hash", 8}}}}},
           {{"t", "arrived"}, {"ticket", 1}, {"what", "the end"}, {"within_s", 5.0}},
           {{"t", "ready"}, {"ticket", 1}},
           {{"t", "answer"}, {"what", "stacks"}, {"answer", {{{"name", "training"}}}}},
           {{"t", "stop"}, {"reason", "signal"}, {"resumable", true}},
           {{"t", "bye"}},
           {{"t", "standing"}, {"generation", 2}, {"step", -1},     {"reached", 12},    {"share", 2},
            {"copied", 1},     {"shares", 4},     {"shared", true}, {"paused", false},  {"finished", false},
            {"save", true},    {"tag", "kept"},   {"commits", 3},   {"applied", 4},     {"begun", 0},
            {"refused", 0},    {"refusal", ""},   {"sequence", 40}, {"commit", commit}, {"ticket", 7},
            {"order", 9}}})
    EXPECT_EQ(again(json), json);
}

TEST(RankMessages, AHeartbeatKeepsItsDigest) {
  const Json beat = {{"t", "beat"},           {"at_ns", 5},
                     {"host", "here"},        {"pid", 500},
                     {"step", 812},           {"phase", "reduce"},
                     {"phase_s", 0.5},        {"state", "running"},
                     {"best_eval_loss", 2.5}, {"launched", {4471, 0xfedcba9876543210U}}};
  EXPECT_EQ(again(beat), beat);
}

/// Written, or why it can't be read.
Json outcome(const Result<std::variant<message::ToRanks, message::ToRankZero>>& read) {
  return read ? written(*read) : Json("error: " + read.error().message);
}

Json outcome_by_json(const std::vector<std::uint8_t>& bytes) {
  const auto json = from_cbor(bytes.data(), bytes.size());
  return json ? outcome(message::from_json(*json)) : Json("error: " + json.error().message);
}

TEST(RankMessages, AreReadTheSameWithJsonInBetween) {
  message::Beat beat;
  beat.at_ns = -5;
  beat.host = "here";
  beat.pid = 70000;
  beat.phase_s = 0.1;
  beat.evaluating_step = 24;
  beat.best_eval_loss = 1.5;
  beat.collective = CollectiveStatus{300, "all_reduce", 124000000, true, 0.25};
  beat.launched = {300, 0xfedcba9876543210U};
  message::Beat diverged;
  diverged.best_eval_loss = std::numeric_limits<double>::quiet_NaN();
  message::Applied applied;
  applied.order = 12;
  applied.digest = "0123456789abcdef";
  applied.renewed_s = 0.5;
  message::Applied moving = applied;
  moving.moved.push_back({"log.every", std::int64_t{1}, std::int64_t{2}});
  for (const message::ToRankZero& message : std::initializer_list<message::ToRankZero>{
           beat, diverged, message::Beat{}, applied, moving, message::Prepared{3, ""},
           message::Prepared{3, "rank 1: no"}, message::Fenced{300, -1}, message::Hash{20, 1}}) {
    auto bytes = *message::encoded(message);
    EXPECT_EQ(outcome(message::decoded(bytes)), to_json(message));
    // Also where a byte is another one: what can be read, and what is said of what can't.
    for (std::uint8_t& byte : bytes) {
      const std::uint8_t right = byte;
      for (int other = 0; other < 256; other += 7) {
        byte = static_cast<std::uint8_t>(other);
        ASSERT_EQ(to_cbor(outcome(message::decoded(bytes))), to_cbor(outcome_by_json(bytes)))
            << to_json(message) << " at " << &byte - bytes.data() << ": " << other;
      }
      byte = right;
    }
    for (bytes.pop_back(); !bytes.empty(); bytes.pop_back())
      EXPECT_EQ(outcome(message::decoded(bytes)), "error: malformed CBOR message");
  }
}

TEST(RankMessages, SayWhatCannotBeRead) {
  EXPECT_EQ(error_of(5), "has to be an object");
  EXPECT_EQ(error_of(Json::object()), "unknown message ''");
  EXPECT_EQ(error_of({{"t", "explode"}}), "unknown message 'explode'");
  EXPECT_EQ(error_of({{"t", "fenced"}, {"ticket", "three"}}), "field 'ticket' has to be a whole number");
  EXPECT_THAT(error_of({{"t", "beat"}, {"phase", "dancing"}}),
              HasSubstr("field 'phase' has to be one of starting"));
  EXPECT_EQ(error_of({{"t", "beat"}, {"launched", 5}}), "field 'launched' has to be a list of two numbers");
  EXPECT_THAT(error_of({{"t", "standing"}, {"commit", {{"ticket", 1}, {"order", {{"changes", 5}}}}}}),
              HasSubstr("field 'commit' "));
}

TEST(RankMessages, AnOrderThatCannotBeReadIsAnsweredByItsError) {
  const auto read = message::from_json({{"t", "prepare"}, {"ticket", 3}, {"order", {{"changes", 5}}}});
  ASSERT_TRUE(read);
  const auto& prepare = std::get<message::Prepare>(std::get<message::ToRanks>(*read));
  EXPECT_EQ(prepare.ticket, 3U);
  EXPECT_FALSE(prepare.order);
}

TEST(LedgerAnswers, AreReadAsTheyWereWritten) {
  Ledger ledger;
  LedgerEntry made = entry(Collective::broadcast, {nullptr, 7, DataType::uint8}, "path");
  made.phase = Phase::saving;
  ledger.start(ledger.enqueue(made));
  const Json json = to_json(answer_of(ledger));
  LedgerAnswer read;
  ASSERT_TRUE(read_json(json, read));
  EXPECT_EQ(to_json(read), json);
  ASSERT_EQ(read.entries.size(), 1U);
  EXPECT_EQ(read.entries[0].kind, Collective::broadcast);
  EXPECT_EQ(read.entries[0].phase, Phase::saving);
  EXPECT_TRUE(read.entries[0].running);
  EXPECT_FALSE(read_json({{"entries", 5}}, read));
}

}  // namespace
}  // namespace footplate
