#pragma once

#include "protocol/own_session.h"

namespace footplate {

/// Messages between rank 0's coordinator and the participants, as JSON objects in CBOR. `t` says which;
/// `ticket` numbers the coordinator's attempts (an order, or the withdrawing of one).
///
/// to the ranks
///   prepare  ticket, order | withdraws     can you? Answered by `prepared`.
///   fence    ticket                        Answered by `fenced`; hold that step until the outcome.
///   commit   ticket, step, targeted | withdraws
///   abort    ticket
///   cancel   order, call                   give up a running call
///            evaluation: step              or the evaluation of that step
///   finish                                 all are at the end
///   remedy   ticket, stop, text            a collective hangs: rank 0 is about to rebuild, or all end; no
///   text:
///                                          it isn't. Answered by `ready`
///   die      rank, pid, host               that rank is stuck: it kills itself, or its neighbours kill it
///   met      ticket, error?                all have come to that meeting; with `error` nobody goes on
///   inquire  what                          `ledger`, `patterns`, `stacks`: answered by one of that name
///   rejoin   generation, step, …           once all stand: how they go on; `impossible`: that they can't
/// to rank 0
///   prepared ticket, error?
///   fenced   ticket, step                  the first step not begun
///   applied  order, step, digest, moved, error?
///   call     a call report (rank 0 alone sends it)
///   end      step, commits                 waits at the end, having heard of so many commits
///   hash     step, hash
///   beat     a rank of the status, `state`, and `launched`: [sequence of its newest collective, digest]
///   arrived  ticket, what, within_s        the training thread waits for the others there
///   ready    ticket                        has heard of the remedy
///   overdue  sequence, limit_s, over?, …   the watchdog's finding; `over`: it has ended after all
///   ledger   newest, entries               the last collectives of this rank
///   patterns patterns                      what it has counted of them
///   stacks   threads                       where its threads are (stacks.h)
///   stop     reason, resumable             a signal reached this rank
///   standing generation, step, …           after a loss: where this rank stands (recovery.h)
///   bye                                    sends no more
namespace message {
inline constexpr auto kPrepare = "prepare";
inline constexpr auto kFence = "fence";
inline constexpr auto kCommit = "commit";
inline constexpr auto kAbort = "abort";
inline constexpr auto kCancel = "cancel";
inline constexpr auto kFinish = "finish";
inline constexpr auto kMet = "met";
inline constexpr auto kDie = "die";
inline constexpr auto kRemedy = "remedy";
inline constexpr auto kReady = "ready";
inline constexpr auto kInquire = "inquire";
inline constexpr auto kPrepared = "prepared";
inline constexpr auto kFenced = "fenced";
inline constexpr auto kApplied = "applied";
inline constexpr auto kCall = "call";
inline constexpr auto kEnd = "end";
inline constexpr auto kHash = "hash";
inline constexpr auto kBeat = "beat";
inline constexpr auto kStop = "stop";
inline constexpr auto kArrived = "arrived";
inline constexpr auto kOverdue = "overdue";
inline constexpr auto kLedger = "ledger";
inline constexpr auto kPatterns = "patterns";
inline constexpr auto kStacks = "stacks";
inline constexpr auto kStanding = "standing";
inline constexpr auto kRejoin = "rejoin";
inline constexpr auto kBye = "bye";
}  // namespace message

}  // namespace footplate
