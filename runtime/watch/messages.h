#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "protocol/messages/order_report.h"
#include "protocol/messages/run_status.h"
#include "protocol/own_session.h"
#include "runtime/base/progress.h"
#include "runtime/comm/ledger.h"
#include "runtime/comm/message_channel.h"
#include "runtime/watch/committed.h"
#include "runtime/watch/state_hash.h"

namespace footplate {
class CborItem;
}

/// Messages between rank 0's coordinator and the participants: JSON objects in CBOR on the way, whose `t`
/// says which one it is. `ticket` numbers the coordinator's attempts (an order, or the withdrawing of one).
namespace footplate::message {

// --- to the ranks ---

/// Can you? Answered by Prepared.
struct Prepare {
  std::uint64_t ticket = 0;
  Result<Order> order = Order{};  ///< an error is the answer, too
  std::uint64_t withdraws = 0;    ///< an order's id; 0: `order` is asked for
};
/// Answered by Fenced; that step is held until the outcome.
struct Fence {
  std::uint64_t ticket = 0;
};
struct Commit {
  std::uint64_t ticket = 0;
  std::int64_t step = 0;
  bool targeted = false;
  std::uint64_t withdraws = 0;  ///< an order's id; 0: none, and step and targeted count
};
struct Abort {
  std::uint64_t ticket = 0;
};
/// Give up a running call.
struct Cancel {
  std::uint64_t order = 0;
  std::size_t call = 0;
  std::optional<std::int64_t> evaluation;  ///< or the evaluation of that step
};
/// All are at the end.
struct Finish {};
/// A collective hangs: rank 0 is about to rebuild, or all end; no text: it isn't. Answered by Ready.
struct Remedy {
  std::uint64_t ticket = 0;
  bool stop = false;
  std::string text;
};
/// That rank is stuck: it kills itself, or its neighbours kill it.
struct Die {
  int rank = 0;
  int pid = 0;
  std::string host;
};
/// All have come to that meeting; with an error nobody goes on.
struct Met {
  std::uint64_t ticket = 0;
  std::string error;
};
/// One of rank_queries.h, answered by Answer.
struct Inquire {
  std::string what;
};
/// The newest commit that a rank knows of.
struct NewestCommit {
  std::uint64_t ticket = 0;
  std::uint64_t withdraws = 0;  ///< an order's id; 0: none
  Committed committed;          ///< where it withdraws none
};
/// Once all stand: how they go on.
struct Rejoin {
  std::uint32_t generation = 0;
  std::string impossible;  ///< why they can't; then nothing else counts
  std::int64_t step = 0;   ///< completed
  int source = 0;          ///< rank whose state counts
  std::vector<int> behind;
  bool shared = false;     ///< Rejoin::shared
  std::string checkpoint;  ///< Rejoin::checkpoint
  std::int64_t left = 0;   ///< Rejoin::left
  std::optional<NewestCommit> commit;
  bool paused = false;
  bool finished = false;
  bool save = false;  ///< again
  std::string tag;    ///< of that save
  std::uint64_t sequence = 0;
  std::uint64_t commits = 0;
  std::uint64_t begun = 0;
  std::uint64_t applied = 0;  ///< orders: the most that a rank has
  std::uint64_t ticket = 0;   ///< this one and the next: the largest that anybody has seen
  std::uint64_t order = 0;
  std::uint64_t refused = 0;  ///< number of the last order that was refused as it was applied; 0: none
  std::string refusal;
};
using ToRanks =
    std::variant<Prepare, Fence, Commit, Abort, Cancel, Finish, Remedy, Die, Met, Inquire, Rejoin>;

// --- to rank 0 ---

struct Prepared {
  std::uint64_t ticket = 0;
  std::string error;  ///< why it can't; empty: it can
};
struct Fenced {
  std::uint64_t ticket = 0;
  std::int64_t step = 0;  ///< the first one that it hasn't begun
};
struct Applied {
  std::uint64_t order = 0;
  std::int64_t step = 0;
  std::string digest;
  std::vector<Moved> moved;  ///< rank 0 alone tells it
  std::string error;         ///< it had become impossible
  std::optional<double> renewed_s;
};
/// Waits at the end, having heard of so many commits.
struct End {
  std::int64_t step = 0;
  std::uint64_t commits = 0;
};
struct Hash {
  StateHash of;
};
/// A rank's newest collective.
struct Launched {
  std::uint64_t sequence = 0;
  std::uint64_t digest = 0;
};
Json to_json(const Launched& launched);
Result<void> read_json(const Json& json, Launched& launched);
/// Of a heartbeat's CBOR (protocol/messages/cbor_fields.h). Whether it could be read.
bool read_cbor(const CborItem& item, Launched& launched);
/// The heartbeat.
struct Beat {
  std::int64_t at_ns = 0;  ///< of the sender's clock, when it was sent
  std::string host;
  int pid = 0;
  std::int64_t step = 0;
  Phase phase = Phase::starting;
  double phase_s = 0;  ///< since it came to this phase
  RunState state = RunState::starting;
  std::optional<std::int64_t> evaluating_step;
  std::optional<std::int64_t> saving_step;  ///< of the checkpoint that is written beside training
  std::optional<double> saving_share;       ///< of it that is written
  std::optional<double> best_eval_loss;
  std::optional<CollectiveStatus> collective;
  std::optional<Launched> launched;
};
/// The training thread waits for the others there.
struct Arrived {
  std::uint64_t ticket = 0;
  std::string what;
  double within_s = 0;
};
/// Has heard of the remedy.
struct Ready {
  std::uint64_t ticket = 0;
};
/// The watchdog's finding.
struct Overdue {
  std::uint64_t sequence = 0;
  Collective kind = Collective::all_reduce;
  std::string name;
  std::int64_t step = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  std::string setting;  ///< that the limit comes from
  double limit_s = 0;
  bool over = false;  ///< it has ended after all,
  double took_s = 0;  ///< after so long
};
/// What a rank says to Inquire, as the query gives it.
struct Answer {
  std::string what;
  Json answer;
};
/// A signal reached this rank.
struct Stop {
  std::string reason;
  bool resumable = false;
};
/// After a loss: where this rank stands (recovery.h).
struct Standing {
  std::uint32_t generation = 0;
  std::int64_t step = 0;     ///< completed; -1: its state is undefined
  std::int64_t reached = 0;  ///< the step that it stands at, whatever its state is
  int share = 0;             ///< of sharded state it has this of `shares` shares, and
  int copied = 0;            ///< a copy of this one
  int shares = 1;            ///< 1: it has all of it
  bool shared = false;       ///< as of HeldShare
  bool paused = false;
  bool finished = false;
  bool save = false;  ///< one was interrupted
  std::string tag;    ///< of that save
  std::uint64_t commits = 0;
  std::uint64_t applied = 0;  ///< how many orders
  std::uint64_t begun = 0;
  std::uint64_t refused = 0;
  std::string refusal;
  std::uint64_t sequence = 0;
  std::optional<NewestCommit> commit;
  std::uint64_t ticket = 0;  ///< this one and the next: the largest that it has seen
  std::uint64_t order = 0;
};
/// Sends no more.
struct Bye {};
/// A call report is rank 0's to itself.
using ToRankZero = std::variant<Prepared, Fenced, Applied, CallReport, End, Hash, Beat, Arrived, Ready,
                                Overdue, Answer, Stop, Standing, Bye>;

Json to_json(const ToRanks& message);
Json to_json(const ToRankZero& message);
/// Errors (usage): an unknown `t`, a field of the wrong type.
Result<std::variant<ToRanks, ToRankZero>> from_json(const Json& json);

/// to_json() in CBOR: what goes over a MessageChannel.
MessageBytes encoded(const ToRanks& message);
MessageBytes encoded(const ToRankZero& message);
/// Errors: those of from_json(); malformed CBOR (failed).
Result<std::variant<ToRanks, ToRankZero>> decoded(std::span<const std::uint8_t> bytes);

/// What a joining rank needs to go on as the one that tells it.
struct HandOver {
  std::vector<Committed> committed;  ///< of late, oldest first
  std::vector<Applied> applied;      ///< likewise
  std::optional<NewestCommit> commit;
  std::uint64_t ticket = 0, order = 0;  ///< the largest seen
};
Json to_json(const HandOver& handed);
Result<void> read_json(const Json& json, HandOver& handed);

}  // namespace footplate::message

namespace footplate {

Json to_json(const Committed& committed);
/// Types only, as order_from_json().
Result<void> read_json(const Json& json, Committed& committed);

}  // namespace footplate
