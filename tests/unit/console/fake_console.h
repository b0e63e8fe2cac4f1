#pragma once

#include <gtest/gtest.h>
#include <deque>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "console/lua/session/session.h"

namespace footplate::test {

/// The console as a session sees it, in process: orders are applied at once on 8/8 ranks, calls are done
/// at once, unless a test says otherwise.
class FakeConsole final : public lua::ConsoleLink {
 public:
  explicit FakeConsole(SessionKind kind = SessionKind::session);
  ~FakeConsole() override;

  lua::Session& session() { return *session_; }

  /// One chunk; `talk` and `out` are of this chunk alone.
  lua::Outcome run(const std::string& code);
  std::string talk, out;
  std::vector<std::string> progress;

  std::vector<Order> orders;         ///< that were sent
  std::vector<std::string> asked;    ///< operations, in order
  std::string refuse_with;           ///< not empty: every order is refused with this
  std::vector<std::string> waiting;  ///< texts of `waiting` reports before an order is applied
  std::optional<double> renewed_s;   ///< applied orders have new communicators, made in so many seconds
  std::string disagreement;          ///< not empty: applied orders carry this error
  bool never_agreed = false;         ///< orders wait until their time is over
  std::string silent;                ///< not empty: by then rank 0 is, and hasn't taken them
  std::int64_t first_step = 0;       ///< no order applies before it
  bool interrupt_waits = false;      ///< somebody presses Ctrl-C during the next wait
  Json call_result = {{"loss", 1.5}};
  std::string call_error;    ///< not empty: calls fail with this
  std::vector<Json> rules;   ///< that were registered
  std::vector<Json> others;  ///< reports of orders that others gave
  Json store = Json::object();
  Json pending = Json::array();  ///< what settings("pending") gets
  Json metrics = Json::object();
  Json computed = Json::object();  ///< {name: {"value", "source"}} of computed settings, as they are now
  std::function<Json(double step)> line = [](double step) {
    return Json{{"step", step}, {"train/loss", 2.0}, {"train/grad_norm", 1.0}, {"perf/step_ms", 10.0}};
  };  ///< what is logged every log.every steps, where wait_lines asks for it
  Json stacks = {{"rank", nullptr}, {"ranks", Json::array()}};  ///< what ranks.stacks() gets
  std::vector<Json> stacks_asked;
  std::vector<Json> cancelled;  ///< what `cancel` was asked for
  std::vector<Json> dropped;    ///< what comm.drop() has asked for
  Json status = {{"run", "kjv-3"}, {"state", "running"}, {"step", 812}, {"ranks", Json::array()}};

  Result<Json> ask(std::string_view op, Json fields, const Note& note, std::optional<Time> left) override;
  void output(std::string_view text, OutputStream stream) override;
  bool interrupted() override { return interrupted_; }
  void clear_interrupt() override { interrupted_ = false; }

 private:
  Json take_order(const Json& json);
  Json wait_order(const Json& fields, const Note& note);
  void apply(Order& order, Json& report);

  Json wait_lines(const Json& fields);

  double logged_ = 812;        ///< last step that was
  std::vector<Json> reports_;  ///< of orders 1, 2, …
  bool interrupted_ = false;
  std::unique_ptr<lua::Session> session_;
};

/// Chunks in a session of their own console.
class LuaChunks : public testing::Test {
 protected:
  std::string text_of(const std::string& code);
  /// Of a chunk that has to fail.
  std::string error_of(const std::string& code);
  FakeConsole console;
};

}  // namespace footplate::test
