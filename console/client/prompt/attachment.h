#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "console/client/link/event_feed.h"
#include "console/client/link/live_link.h"
#include "console/client/prompt/own_actions.h"
#include "console/client/prompt/prompt.h"
#include "console/client/prompt/terminal.h"

namespace footplate {

/// An interactive client of one run: reads chunks, shows what comes of them, and everything that happens
/// meanwhile. One thread; nothing in the run waits for it. More than 30 methods: seven are Background's, and
/// each thing that the console sends or a person types has one.
class Attachment final : public Background {
 public:
  struct Options {
    std::string role;  ///< asked for, at most what the console gives; empty: that
    /// While the run starts: lines to show, and whether it is over before there is a console.
    std::function<std::string()> startup_lines;
    std::function<bool()> startup_ended;
  };
  enum class End {
    detached,
    run_over,     ///< the run has ended or was lost
    not_started,  ///< it ended before there was a console
    unreachable,  ///< no console answered
    failed,       ///< without a terminal, the first error ends it: error()
  };

  Attachment(const RunRecord& run, Options options);
  ~Attachment() override;

  /// Until the user leaves or the run is over.
  End run();
  Error error() const { return error_.value_or(Error()); }

  int descriptor() const override { return link_.fd(); }
  std::chrono::milliseconds patience() const override;
  void look() override;
  bool over() const override { return over_ || (asking_ && chunk_ended_); }
  bool is_complete(const std::string& text) override;
  Completions complete(const std::string& before_cursor) override;
  std::optional<TypingHint> hint(const std::string& text) override;
  bool nothing_to_cancel() override;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Outcome { done, failed, interrupted, left };

  // attachment.cpp: the link and what it says
  std::optional<End> wait_for_console();
  void connected(const ConsoleHello& hello);
  void greet(const RunStatus& status);
  void show_others(const AttachAnswer& answer);
  void announce_missed(const std::vector<OrderReport>& orders);
  void lost();
  void said(const ConsoleLine& line);
  void show_output(const ChunkOutput& output);
  void happened(const Event& event);
  void ask_status();
  void know(const RunStatus& status);
  bool is_news(const RankChange& change);
  void update_prompt();
  void tell_silence();
  LinkState link_state() const;
  bool is_over() const;

  // attachment_input.cpp: what is typed
  std::optional<End> use(const std::string& input);
  Outcome evaluate(const std::string& code);
  void answer_question();
  void finish(const Result<Json>& answer, const std::string& code, bool sent);
  void show_value(const std::string& text);
  void meta(const std::string& command);
  void watch(const std::string& arguments);
  bool wait_seconds(double seconds);
  void help(const std::string& name);
  void fail_with(const Error& error);

  const std::string name_;
  const std::filesystem::path directory_;
  const Options options_;
  LiveLink link_;
  std::unique_ptr<Terminal> terminal_;
  EventFeed feed_;
  std::optional<RunStatus> status_;  ///< nothing: it isn't known yet
  Role role_ = Role::admin;
  std::string session_;
  std::set<std::string> noted_;            ///< what the last status had notes about
  std::set<std::string> told_;             ///< what an event said of silent ranks, since one came back
  std::optional<ChunkQuestion> question_;  ///< of the running chunk, not yet shown
  bool asking_ = false;                    ///< what is typed is its answer
  bool chunk_ended_ = true;
  bool over_ = false;
  bool left_ = false;           ///< \q
  bool was_connected_ = false;  ///< at least once
  bool greeted_ = false;
  bool behind_ = false;              ///< the last status had an earlier step than the prompt
  bool more_ = false;                ///< look() left something for the next one
  std::set<std::string> own_names_;  ///< that chunks of this session have assigned
  std::string hinted_;               ///< the text that hint_ is of
  TypingHint hint_;
  bool hint_open_ = false;  ///< a hint has been asked for
  bool watching_ = false;   ///< values go into watched_
  std::string watched_;
  OwnActions own_;
  std::uint64_t last_order_ = 0;
  std::optional<Error> error_;
  Clock::time_point status_due_{};
  Clock::time_point keep_due_{};
  std::optional<Clock::time_point> lost_since_;
  std::optional<Clock::time_point> asked_since_;  ///< for a status that hasn't come yet
  bool told_silence_ = false;
};

}  // namespace footplate
