// The parts of the interactive client that need no terminal.
#include <gmock/gmock.h>

#include <cmath>

#include "console/client/link/event_feed.h"
#include "console/client/prompt/chunk_error.h"
#include "console/client/prompt/edit_terminal.h"
#include "console/client/prompt/input_painter.h"
#include "console/client/prompt/margin.h"
#include "console/client/prompt/own_actions.h"
#include "console/client/prompt/own_names.h"
#include "console/client/prompt/prompt.h"
#include "console/client/render/axis.h"
#include "console/client/render/event_text.h"
#include "console/client/render/plot.h"
#include "console/client/render/render.h"
#include "console/client/render/text.h"

namespace footplate::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

/// As a client takes it from the console.
void push(EventFeed& feed, const std::string& topic, const Json& data, EventFeed::Clock::time_point now) {
  const auto line = console_line_from_json({{"type", "event"}, {"topic", topic}, {"data", data}});
  if (const auto* event = std::get_if<Event>(&line)) return feed.push(*event, now);
  feed.push(std::get<UnknownEvent>(line), now);
}

TEST(Text, WideAndBack) {
  for (const char* text : {"", "abc", "grün", "日本", "\U0001f600"}) EXPECT_EQ(utf8(wide(text)), text);
  EXPECT_EQ(wide("a\xff\xc3"), L"a\xfffd\xfffd");
  EXPECT_EQ(wide("\xc0\x80\xed\xa0\x80").find(L'\0'), std::wstring::npos);
}

TEST(Text, CutToColumns) {
  EXPECT_EQ(cut("abcdef", 6), "abcdef");
  EXPECT_EQ(cut("abcdef", 5), "abcd…");
}

TEST(Text, TabsBecomeBlanks) {
  EXPECT_EQ(with_blanks("a\tb"), "a       b");
  EXPECT_EQ(with_blanks("\tab\tc"), "        ab      c");
}

TEST(Place, AsLibeditLaysOut) {
  const auto at = [](const std::wstring& text) {
    const CursorPlace place = place_after(text, 3, 10);
    return std::pair(place.row, place.column);
  };
  EXPECT_EQ(at(L""), std::pair(0UL, 3UL));
  EXPECT_EQ(at(L"123456"), std::pair(0UL, 9UL));
  EXPECT_EQ(at(L"1234567"), std::pair(1UL, 0UL));
  EXPECT_EQ(at(L"1234567\n"), std::pair(2UL, 0UL));
  EXPECT_EQ(at(L"a\nb\tc"), std::pair(1UL, 9UL));
}

TEST(Margin, ComesAndGoes) {
  EXPECT_EQ(with_margin(L"for i = 1, 2 do\nprint(i)\nend"), L"for i = 1, 2 do\n    print(i)\n    end");
  for (const wchar_t* text :
       {L"a", L"a\n", L"x = [[\ntext\n]]\ny = 1", L"--[[\n\n]] f(\n)", L"x = 'a\\\nb'\n", L"x = 'a\nb"})
    EXPECT_EQ(without_margin(with_margin(text)), text);
  EXPECT_FALSE(gets_margin(L"x = [["));
  EXPECT_TRUE(gets_margin(L"f("));
}

TEST(Painter, KeepsThePlaceOfTheCursor) {
  ShownInput input{L"r:1> ", L"f(\n    2", 8, 20, 10};
  EXPECT_EQ(paint(input, /*color=*/false),
            "\x1b"
            "7\x1b[1A\rr:1> f(\r\x1b[B... 2\x1b"
            "8");
  EXPECT_THAT(paint(input, /*color=*/true), ::testing::HasSubstr("\x1b[90m... \x1b[0m\x1b[36m2\x1b[0m"));
  input.text = L"x";
  input.cursor = 1;
  EXPECT_EQ(paint(input, /*color=*/false), "");
  EXPECT_EQ(paint_hint(input, L"yz, and what it is"),
            "\x1b"
            "7\x1b[90myz, and what…\x1b[0m\x1b"
            "8");
  input.prompt = L"r:1 STALLED> ";
  EXPECT_THAT(paint(input, /*color=*/true), ::testing::HasSubstr("\x1b[1;33mr:1 STALLED> \x1b[0mx"));
}

TEST(OwnNames, AreThoseThatAChunkAssigns) {
  std::set<std::string> names;
  add_own_names(
      "alpha = 1; local beta = 2 optim.lr_scale = 3 f{ gamma = 4 } if alpha == 1 then delta = 'eta = 1' end",
      names);
  add_own_names("function theta(iota) kappa = iota end -- x = 1\nlocal function mu() end", names);
  EXPECT_EQ(names, (std::set<std::string>{"alpha", "delta", "kappa", "theta"}));
}

TEST(Status, StalledRunHasNoPace) {
  RunStatus status;
  status.state = RunState::running;
  status.tokens_per_s = 4386;
  status.step_ms = 12;
  status.eta_s = 360;
  EXPECT_THAT(render_status(status, "r"),
              HasSubstr("r · running · step 0 · 4386 tokens/s · 12 ms/step · 6 min left\n"));
  status.ranks.resize(3);
  status.ranks[1].stalled = status.ranks[2].stalled = true;
  status.ranks[1].silent_s = 4;
  status.ranks[2].silent_s = 13;
  EXPECT_THAT(render_status(status, "r"), ::testing::StartsWith("r · STALLED 13 s · step 0\nrank"));
}

TEST(Events, HaveShortPathsAndNamesOfSessions) {
  SaveResult save;
  save.step = 9;
  save.path = "/home/ann/runs/kjv-3/checkpoints/main/step-00000009";
  EXPECT_EQ(event_text(save), "checkpoint at step 9 · checkpoints/main/step-00000009");
  OrderReport report;
  report.state = OrderState::applied;
  report.order = Order{};
  report.order->user = "ann";
  report.order->session = "s3";
  report.order->calls = {{"run.store", {{"name", "x"}, {"value", "5"}}}};
  EXPECT_THAT(event_text(report).value_or(""), ::testing::StartsWith("ann#3: store.x = 5, applied at step"));
  report.order->session = "rule 2";
  EXPECT_THAT(event_text(report).value_or(""), ::testing::StartsWith("ann, rule 2: store.x = 5"));
}

TEST(Columns, BreakAtTheWidth) {
  EXPECT_EQ(fit_columns("name  what it is for, in some words\nb     short", 24),
            "name  what it is for, in\n      some words\nb     short");
  EXPECT_EQ(fit_columns("one line  that is longer than all that", 20),
            "one line  that is longer than all that");
  EXPECT_EQ(fit_columns("no columns in a row that is long\n", 12), "no columns in a row that is long\n");
}

TEST(OwnActions, HaveOneLine) {
  OwnActions own;
  own.chunk_begins("ckpt.save()");
  EXPECT_EQ(own.talk("ckpt.save(), applied at step 8 on 2/2 ranks\n"), "");
  EXPECT_TRUE(own.is_told("ckpt.save running (order 4)"));
  EXPECT_EQ(own.talk("log.every 10 -> 5, ckpt.save(), applied at step 8 on 2/2 ranks\n"),
            "log.every 10 -> 5, ckpt.save(), applied at step 8 on 2/2 ranks\n");
  RunChange paused;
  paused.state = RunState::paused;
  EXPECT_FALSE(own.is_told(EventData(paused)));
  own.chunk_begins("run.pause()");
  EXPECT_TRUE(own.is_told(EventData(paused)));
  EXPECT_FALSE(own.is_told("ckpt.save done (order 4)"));  // asked for by itself
  own.shown_note("trial of x: kept");
  EXPECT_TRUE(own.is_told("trial of x: kept"));
}

TEST(Prompt, TellsTheTruth) {
  RunStatus running;
  running.state = RunState::running;
  running.step = 48211;
  EXPECT_EQ(prompt_text("kjv-3", running, Role::admin, LinkState::connected), "kjv-3:48211> ");
  EXPECT_EQ(prompt_text("kjv-3", running, Role::view, LinkState::connected), "kjv-3:48211 view> ");
  EXPECT_EQ(prompt_text("kjv-3", running, Role::admin, LinkState::lost), "kjv-3:48211 RECONNECTING> ");
  EXPECT_EQ(prompt_text("kjv-3", running, Role::admin, LinkState::silent), "kjv-3:48211 NO ANSWER> ");
  EXPECT_EQ(prompt_text("kjv-3", std::nullopt, Role::admin, LinkState::connected), "kjv-3> ");
  running.step = 1;
  RunStatus paused = running;
  paused.state = RunState::paused;
  EXPECT_EQ(prompt_text("kjv-3", paused, Role::operate, LinkState::connected), "kjv-3:1 PAUSED operate> ");
  running.ranks.emplace_back().stalled = true;
  EXPECT_EQ(prompt_text("r", running, Role::admin, LinkState::connected), "r:1 STALLED> ");
}

TEST(Errors, CaretUnderTheName) {
  const Error error{ErrorKind::script, "input:2: unknown setting 'log.evry'; did you mean log.every?"};
  EXPECT_EQ(
      chunk_error_text(error, 2, "x = 1\n  log.evry = 2"),
      "error: line 2: unknown setting 'log.evry'; did you mean log.every?\n    log.evry = 2\n    ^^^^^^^^");
  EXPECT_EQ(chunk_error_text({ErrorKind::script, "no place"}, 0, "x"), "error: no place");
}

TEST(Feed, MetricsOnceASecond) {
  EventFeed feed;
  const EventFeed::Clock::time_point start{1000s};
  for (int step = 0; step < 100; ++step) push(feed, "metrics", {{"step", step}, {"train/loss", 2.5}}, start);
  EXPECT_EQ(feed.take(start), "step 99 · loss 2.5000\n");
  push(feed, "metrics", {{"step", 100}, {"train/loss", 2.5}}, start + 500ms);
  EXPECT_EQ(feed.take(start + 500ms), "");
  EXPECT_EQ(feed.due(), start + 1s);
  EXPECT_EQ(feed.take(start + 1s), "step 100 · loss 2.5000\n");
}

TEST(Feed, FloodsAreCounted) {
  EventFeed feed;
  const EventFeed::Clock::time_point start{1000s};
  for (int i = 0; i < 1000; ++i) push(feed, "warn", {{"text", "x"}}, start);
  const std::string lines = feed.take(start);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), EventFeed::kLinesASecond);
  EXPECT_EQ(feed.take(start + 1s), "(960 lines left out; footplate log has them)\n");
}

TEST(Feed, OwnOrdersAreNotToldAgain) {
  EventFeed feed;
  feed.own_session("s1");
  const EventFeed::Clock::time_point start{1000s};
  const Json mine = {{"state", "applied"}, {"order", {{"session", "s1"}, {"user", "ann"}}}, {"id", 3}};
  push(feed, "order", mine, start);
  EXPECT_EQ(feed.take(start), "");
}

TEST(Feed, AnEventThatCannotBeReadIsToldByItsText) {
  EventFeed feed;
  const EventFeed::Clock::time_point start{1000s};
  push(feed, "later", {{"text", "of another version"}}, start);
  push(feed, "warn", {{"kind", "of another version"}, {"text", "look"}}, start);
  push(feed, "later", {{"step", 5}}, start);
  EXPECT_EQ(feed.take(start), "later: of another version\nwarn: look\n");
}

TEST(ConsoleLines, NothingThrows) {
  const std::vector<Json> odd = {5,
                                 "x",
                                 Json::array(),
                                 Json(),
                                 {{"moved", 5}},
                                 {{"applied", {{"moved", {5, "x"}}}}},
                                 {{"order", {{"calls", {5, {{"action", 5}}}}, {"changes", {7}}}}}};
  for (const char* topic :
       {"metrics", "order", "eval", "ckpt", "rank", "run", "warn", "call", "client", "other"})
    for (const Json& data : odd) {
      Json state = data.is_object() ? data : Json{{"x", data}};
      state["state"] = "applied";
      for (const Json& one : {data, state}) {
        const auto line = console_line_from_json({{"type", "event"}, {"topic", topic}, {"data", one}});
        if (const auto* event = std::get_if<Event>(&line)) {
          EXPECT_NO_THROW(event_text(event->data));
        }
      }
    }
  for (const Json& line : odd)
    EXPECT_TRUE(std::holds_alternative<std::monostate>(console_line_from_json(line)));
  for (const char* type : {"result", "error", "output", "question", "event"})
    EXPECT_NO_THROW(
        console_line_from_json({{"type", type}, {"id", Json::array()}, {"text", 5}, {"error", 7}}));
}

TEST(ConsoleLines, AnErrorKeepsItsKind) {
  const auto line = console_line_from_json(
      {{"type", "error"}, {"id", 3}, {"error", {{"kind", "refused"}, {"message", "no"}}}});
  const auto* answer = std::get_if<RequestAnswer>(&line);
  ASSERT_TRUE(answer != nullptr && !answer->value);
  EXPECT_EQ(answer->id, 3);
  EXPECT_EQ(answer->value.error().kind, ErrorKind::refused);
  EXPECT_FALSE(answer_as<RunStatus>(Json("no status")));
}

TEST(Axis, HasThreeToFourRoundTicks) {
  for (double low = -3; low < 3; low += 0.37)
    for (double size = 1e-4; size < 1e6; size *= 1.7) {
      const auto all = ticks({low, low + size}, 4);
      ASSERT_GE(all.size(), 2U) << low << " " << size;
      ASSERT_LE(all.size(), 4U) << low << " " << size;
      EXPECT_GE(all.front(), low - size * 1e-6);
      EXPECT_LE(all.back(), low + size * (1 + 1e-6));
    }
  EXPECT_EQ(ticks({0, 10}, 4), (std::vector<double>{0, 5, 10}));
  EXPECT_EQ(ticks({5, 5}, 4), (std::vector<double>{5}));
  EXPECT_LE(ticks({1e17, 1e17 + 64}, 4).size(), 4U);
  EXPECT_EQ(log_ticks({1e-4, 1}, 4), (std::vector<double>{1e-4, 1e-2, 1}));
  EXPECT_EQ(log_ticks({1, 5}, 4), (std::vector<double>{1, 2, 5}));
}

TEST(Axis, ItsRangeHasNoOutliersButTheNewestValues) {
  std::vector<double> values(100, 0);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 - static_cast<double>(i) / 100;
  const auto is = [&](double low, double high) {
    const AxisRange range = usual_range(values);
    return std::abs(range.low - low) < 1e-9 && std::abs(range.high - high) < 1e-9;
  };
  EXPECT_TRUE(is(1.01, 2)) << "none is one";
  values[0] = 900;
  values[50] = -70;
  EXPECT_GT(usual_range(values).low, 0);
  EXPECT_LT(usual_range(values).high, 3);
  values[95] = 40;
  EXPECT_EQ(usual_range(values).high, 40) << "it is one of the newest";
  values.assign(5, 1);
  values[2] = 900;
  EXPECT_TRUE(is(1, 900)) << "too few to tell";
  values.assign(100, 1);
  EXPECT_TRUE(is(1, 1));
}

TEST(Plot, FitsItsPlace) {
  Series series{"train/loss", {}, {{50, "ann: log.every 50 -> 10"}, {500, "beyond"}}};
  for (int step = 0; step < 200; ++step)
    series.points.push_back({step * 1.0, step == 100 ? NAN : 4.0 - step * 0.01});
  for (const bool braille : {true, false})
    for (const std::size_t width : {12UL, 40UL, 80UL, 200UL})
      for (const std::size_t height : {6UL, 10UL, 24UL}) {
        const auto rows = plot(series, width, height, {.braille = braille});
        EXPECT_LE(rows.size(), height + 1);
        for (const auto& row : rows) EXPECT_LE(wide(row).size(), std::max<std::size_t>(width, 19)) << row;
      }
  EXPECT_THAT(plot(series, 80, 24, {.braille = false}).front(), HasSubstr("train/loss 2.01 · step 199"));
}

TEST(Plot, WithoutPoints) {
  EXPECT_THAT(plot({"x", {}, {}}, 80, 10, {}).front(), HasSubstr("nothing has been logged yet"));
  EXPECT_THAT(plot({"x", {{1, NAN}}, {}}, 80, 10, {}).front(), Not(HasSubstr("nothing")));
}

}  // namespace
}  // namespace footplate::test
