#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "console/host/automation/rule_runs.h"
#include "console/host/automation/script_run.h"

namespace footplate::host {

/// The source of the chunks that registered the run's rules. Each runs once more, in the rules' process, and
/// again in each new one: that is where the functions of its rules live. One thread.
class RuleChunks {
 public:
  /// What a session's chunk wants to register.
  struct Registration {
    std::string code;
    std::string name = "chunk";
    std::vector<RuleSpec> rules;
  };

  /// What the outcome of a registration is waited for by; set once. The rules' numbers in their order, 0 of
  /// those that are taken back.
  using Outcome = std::shared_ptr<std::optional<Result<std::vector<std::int64_t>>>>;

  /// `save`: writes rules.json to the disk, before a rule's number is told. Both others outlive it.
  RuleChunks(ScriptRun& run, RuleRuns& rules, std::function<void()> save)
      : run_(run), rules_(rules), save_(std::move(save)) {}

  /// A session's chunk has registered rules. `process_runs`: the rules' process does. Errors of the outcome:
  /// a role that is too low, more rules than there may be, the chunk fails when it runs again.
  Outcome add(const Client& client, Registration registration, bool process_runs);

  /// The rules' process is a new one: all have to run in it.
  void process_started();
  bool has_next() const { return !next_.empty(); }
  /// Whether a chunk runs in the rules' process.
  bool busy() const { return running_.has_value(); }
  /// Runs the next one in the rules' process. False: there is none.
  bool send_next(LuaSession& lua);
  /// It has ended.
  void ended(const ChunkEnd& end);
  /// The role of the chunk that runs: it may do what its session may.
  Role role() const;

  /// Runs those again that failed in a new process: what a chunk reads may not have been there right after a
  /// restart.
  void retry();

  /// Forgets those whose rules have all ended, and the oldest of such rules. Not while anybody holds a
  /// reference to a chunk or a rule.
  void forget_dead();

  /// For rules.json, and from it.
  std::vector<KeptChunk> records() const;
  void load(const std::vector<KeptChunk>& records);
  std::int64_t next_number = 1;

 private:
  struct Chunk {
    KeptChunk kept;
    std::vector<RuleSpec> rules;  ///< as the session registered them
    Outcome outcome;              ///< set: a new one, and somebody waits
    int failures = 0;
    int losses = 0;  ///< of the process that ran it for its outcome
  };

  void take_rules(Chunk& chunk, const std::vector<RuleSpec>& specs);
  void take_again(const Chunk& chunk, const std::vector<RuleSpec>& specs);
  void lost(Chunk& chunk, const std::string& error);
  void failed(Chunk& chunk, const std::string& error);
  std::list<Chunk>::iterator find(std::int64_t id);

  ScriptRun& run_;
  RuleRuns& rules_;
  std::function<void()> save_;
  std::list<Chunk> chunks_;
  std::deque<std::int64_t> next_;        ///< that the process hasn't run yet
  std::optional<std::int64_t> running_;  ///< in the process
};

}  // namespace footplate::host
