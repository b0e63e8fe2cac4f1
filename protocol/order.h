#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/value.h"

namespace footplate {

/// Largest order in bytes of JSON; with its report it has to fit a line of the protocol.
inline constexpr std::size_t kLongestOrder = 256 * 1024;

/// One assignment of an order.
struct Change {
  std::string name;
  Value value;
  std::optional<Value> expect;  ///< set: the order is refused if the value at that moment differs
};

/// One call of an action of an order.
struct Call {
  std::string action;
  Json arguments = Json::object();  ///< by parameter name, defaults filled in

  /// Whether the call has this argument, and it isn't null.
  bool has(const char* name) const;
  // An argument that the schema has checked; `missing` where the call lacks it, or has null.
  std::string text(const char* name, std::string missing = {}) const;
  std::int64_t integer(const char* name, std::int64_t missing = 0) const;
  bool flag(const char* name, bool missing = false) const;
};

/// What a chunk of Lua asked for: all of it or nothing, at one step on all ranks. Data, never code.
struct Order {
  std::uint64_t id = 0;                 ///< given by rank 0; 0 until then
  std::string session;                  ///< "s3", "job:watch.lua"
  std::string user;                     ///< from the socket's peer credentials
  std::string source;                   ///< the chunk, for the journal
  std::optional<std::int64_t> at_step;  ///< apply at this step, or as soon after as can be agreed
  std::vector<Change> changes;
  std::vector<Call> calls;
};

/// A setting that an order moved: those it names, and what was computed from them.
struct Moved {
  std::string name;
  Value before;
  Value after;
  bool operator==(const Moved&) const = default;
};

/// What one order did, once every rank has confirmed it.
struct Applied {
  std::uint64_t id = 0;
  std::int64_t step = 0;
  int ranks = 0;  ///< that confirmed
  int world_size = 0;
  std::string digest;  ///< of all run-wide settings afterwards, equal on all ranks
  std::vector<Moved> moved;
  std::optional<double> renewed_s = {};  ///< communicators were made anew for it, in so many seconds
};

/// Who gave an order, for people: "ann", or "ann, rule 3" and "ann, job early_stop" where it was given in
/// ann's name. "" where nobody is named.
std::string given_by(const std::string& user, const std::string& session);

/// Where it took effect, for people: "applied at step 812 on 8/8 ranks", or "new communicators at step 812 on
/// 8/8 ranks, 1.9 s".
std::string effect_text(const Applied& applied);

/// A call as Lua source: ckpt.save{ tag = "x" }.
std::string to_text(const Call& call);

/// The same as people write it: store.x = 5 for run.store{ name = "x", value = "5" }, and
/// ckpt.load{ set = { optim = { lr_scale = 0.5 } } } for the settings' text.
std::string shown_text(const Call& call);

Json to_json(const Order& order);
Json to_json(const Moved& moved);
Json to_json(const Applied& applied);

/// Types only; whether names and values are allowed is the schema's business.
Result<Order> order_from_json(const Json& json);
Result<Applied> applied_from_json(const Json& json);
Result<void> read_json(const Json& json, Order& order);
Result<void> read_json(const Json& json, Moved& moved);
Result<void> read_json(const Json& json, Applied& applied);

}  // namespace footplate
