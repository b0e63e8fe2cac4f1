#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "protocol/messages/cbor_fields.h"
#include "protocol/messages/fields.h"
#include "protocol/messages/run_status_fields.h"
#include "protocol/value.h"
#include "runtime/watch/messages.h"

namespace footplate {

template <>
struct FieldsOf<Committed> {
  static void list(auto& field, auto& committed) {
    field("order", committed.order);
    field("step", committed.step);
    field("targeted", committed.targeted);
  }
};

template <>
struct FieldsOf<message::Fence> {
  static void list(auto& field, auto& fence) { field("ticket", fence.ticket); }
};

template <>
struct FieldsOf<message::Commit> {
  static void list(auto& field, auto& commit) {
    field("ticket", commit.ticket);
    field.unless_empty("withdraws", commit.withdraws);
    if (commit.withdraws != 0) return;
    field("step", commit.step);
    field("targeted", commit.targeted);
  }
};

template <>
struct FieldsOf<message::Abort> {
  static void list(auto& field, auto& abort) { field("ticket", abort.ticket); }
};

template <>
struct FieldsOf<message::Cancel> {
  static void list(auto& field, auto& cancel) {
    field("evaluation", cancel.evaluation);
    if (cancel.evaluation) return;
    field("order", cancel.order);
    field("call", cancel.call);
  }
};

template <>
struct FieldsOf<message::Finish> {
  static void list(auto& /*field*/, auto& /*finish*/) {}
};

template <>
struct FieldsOf<message::Remedy> {
  static void list(auto& field, auto& remedy) {
    field("ticket", remedy.ticket);
    field("stop", remedy.stop);
    field("text", remedy.text);
  }
};

template <>
struct FieldsOf<message::Die> {
  static void list(auto& field, auto& die) {
    field("rank", die.rank);
    field("pid", die.pid);
    field("host", die.host);
  }
};

template <>
struct FieldsOf<message::Met> {
  static void list(auto& field, auto& met) {
    field("ticket", met.ticket);
    field.unless_empty("error", met.error);
  }
};

template <>
struct FieldsOf<message::Inquire> {
  static void list(auto& field, auto& inquire) { field("what", inquire.what); }
};

template <>
struct FieldsOf<message::NewestCommit> {
  static void list(auto& field, auto& commit) {
    field("ticket", commit.ticket);
    field.unless_empty("withdraws", commit.withdraws);
    if (commit.withdraws == 0) FieldsOf<Committed>::list(field, commit.committed);
  }
};

template <>
struct FieldsOf<message::Rejoin> {
  static void list(auto& field, auto& rejoin) {
    field("generation", rejoin.generation);
    field.unless_empty("impossible", rejoin.impossible);
    if (!rejoin.impossible.empty()) return;
    field("step", rejoin.step);
    field("source", rejoin.source);
    field("behind", rejoin.behind);
    field("shared", rejoin.shared);
    field.unless_empty("checkpoint", rejoin.checkpoint);
    field("left", rejoin.left);
    field("commit", rejoin.commit);
    field("paused", rejoin.paused);
    field("finished", rejoin.finished);
    field("save", rejoin.save);
    field("tag", rejoin.tag);
    field("sequence", rejoin.sequence);
    field("commits", rejoin.commits);
    field("begun", rejoin.begun);
    field("applied", rejoin.applied);
    field("ticket", rejoin.ticket);
    field("order", rejoin.order);
    field("refused", rejoin.refused);
    field("refusal", rejoin.refusal);
  }
};

template <>
struct FieldsOf<message::Prepared> {
  static void list(auto& field, auto& prepared) {
    field("ticket", prepared.ticket);
    field.unless_empty("error", prepared.error);
  }
};

template <>
struct FieldsOf<message::Fenced> {
  static void list(auto& field, auto& fenced) {
    field("ticket", fenced.ticket);
    field("step", fenced.step);
  }
};

template <>
struct FieldsOf<message::Applied> {
  static void list(auto& field, auto& applied) {
    field("order", applied.order);
    field("step", applied.step);
    field("digest", applied.digest);
    field.unless_empty("moved", applied.moved);
    field.unless_empty("error", applied.error);
    field("renewed_s", applied.renewed_s);
  }
};

template <>
struct FieldsOf<message::End> {
  static void list(auto& field, auto& end) {
    field("step", end.step);
    field("commits", end.commits);
  }
};

template <>
struct FieldsOf<TensorHash> {
  static void list(auto& field, auto& tensor) {
    field("name", tensor.name);
    field("hash", tensor.hash);
  }
};

template <>
struct FieldsOf<message::Hash> {
  static void list(auto& field, auto& hash) {
    field("step", hash.of.step);
    field("hash", hash.of.hash);
    field("agreed", hash.of.agreed);
    field.unless_empty("tensors", hash.of.tensors);
  }
};

template <>
struct FieldsOf<message::Beat> {
  static void list(auto& field, auto& beat) {
    field("at_ns", beat.at_ns);
    field("host", beat.host);
    field("pid", beat.pid);
    field("step", beat.step);
    field("phase", beat.phase);
    field("phase_s", beat.phase_s);
    field("state", beat.state);
    field("evaluating_step", beat.evaluating_step);
    field("saving_step", beat.saving_step);
    field("saving_share", beat.saving_share);
    field("best_eval_loss", beat.best_eval_loss);
    field("collective", beat.collective);
    field("launched", beat.launched);
  }
};

template <>
struct FieldsOf<message::Arrived> {
  static void list(auto& field, auto& arrived) {
    field("ticket", arrived.ticket);
    field("what", arrived.what);
    field("within_s", arrived.within_s);
  }
};

template <>
struct FieldsOf<message::Ready> {
  static void list(auto& field, auto& ready) { field("ticket", ready.ticket); }
};

template <>
struct FieldsOf<message::Overdue> {
  static void list(auto& field, auto& overdue) {
    field("sequence", overdue.sequence);
    field("kind", overdue.kind);
    field("name", overdue.name);
    field("step", overdue.step);
    field("elements", overdue.elements);
    field("bytes", overdue.bytes);
    field("setting", overdue.setting);
    field("limit_s", overdue.limit_s);
    field.unless_empty("over", overdue.over);
    field.unless_empty("took_s", overdue.took_s);
  }
};

template <>
struct FieldsOf<message::Answer> {
  static void list(auto& field, auto& answer) {
    field("what", answer.what);
    field("answer", answer.answer);
  }
};

template <>
struct FieldsOf<message::Stop> {
  static void list(auto& field, auto& stop) {
    field("reason", stop.reason);
    field("resumable", stop.resumable);
  }
};

template <>
struct FieldsOf<message::Standing> {
  static void list(auto& field, auto& standing) {
    field("generation", standing.generation);
    field("step", standing.step);
    field("reached", standing.reached);
    field("share", standing.share);
    field("copied", standing.copied);
    field("shares", standing.shares);
    field("shared", standing.shared);
    field("paused", standing.paused);
    field("finished", standing.finished);
    field("save", standing.save);
    field("tag", standing.tag);
    field("commits", standing.commits);
    field("applied", standing.applied);
    field("begun", standing.begun);
    field("refused", standing.refused);
    field("refusal", standing.refusal);
    field("sequence", standing.sequence);
    field("commit", standing.commit);
    field("ticket", standing.ticket);
    field("order", standing.order);
  }
};

template <>
struct FieldsOf<message::Bye> {
  static void list(auto& /*field*/, auto& /*bye*/) {}
};

template <>
struct FieldsOf<message::HandOver> {
  static void list(auto& field, auto& handed) {
    field("committed", handed.committed);
    field("applied", handed.applied);
    field("commit", handed.commit);
    field("ticket", handed.ticket);
    field("order", handed.order);
  }
};

Json to_json(const Committed& committed) {
  return write_fields(committed);
}
Result<void> read_json(const Json& json, Committed& committed) {
  return read_fields(json, committed);
}

namespace message {

/// [sequence, digest]: it is in every heartbeat.
Json to_json(const Launched& launched) {
  return {launched.sequence, launched.digest};
}
Result<void> read_json(const Json& json, Launched& launched) {
  if (!json.is_array() || json.size() != 2) return fields::wrong("a list of two numbers");
  if (auto read = fields::read(json[0], launched.sequence); !read) return read;
  return fields::read(json[1], launched.digest);
}
bool read_cbor(const CborItem& item, Launched& launched) {
  const auto pair = CborPair::of(item);
  return pair && footplate::read_cbor(pair->first, launched.sequence) &&
         footplate::read_cbor(pair->second, launched.digest);
}

namespace {

/// A message's `t`, and what reads it.
struct MessageReader {
  std::string_view word;
  Result<std::variant<ToRanks, ToRankZero>> (*read)(const Json& json);
};

template <class Direction, class T>
Result<std::variant<ToRanks, ToRankZero>> read_message(const Json& json) {
  T message{};
  if (auto read = fields::read(json, message); !read) return tl::unexpected(read.error());
  return std::variant<ToRanks, ToRankZero>(Direction(std::move(message)));
}

Result<std::variant<ToRanks, ToRankZero>> read_prepare(const Json& json) {
  Prepare prepare;
  Json order;
  FieldReader field(json);
  field("ticket", prepare.ticket);
  field("withdraws", prepare.withdraws);
  field("order", order);
  if (auto read = field.take(); !read) return tl::unexpected(read.error());
  if (prepare.withdraws == 0) prepare.order = order_from_json(order);
  return std::variant<ToRanks, ToRankZero>(ToRanks(std::move(prepare)));
}

/// In the order of the alternatives, first ToRanks, then ToRankZero.
constexpr std::array kReaders{
    MessageReader{"prepare", read_prepare},
    MessageReader{"fence", read_message<ToRanks, Fence>},
    MessageReader{"commit", read_message<ToRanks, Commit>},
    MessageReader{"abort", read_message<ToRanks, Abort>},
    MessageReader{"cancel", read_message<ToRanks, Cancel>},
    MessageReader{"finish", read_message<ToRanks, Finish>},
    MessageReader{"remedy", read_message<ToRanks, Remedy>},
    MessageReader{"die", read_message<ToRanks, Die>},
    MessageReader{"met", read_message<ToRanks, Met>},
    MessageReader{"inquire", read_message<ToRanks, Inquire>},
    MessageReader{"rejoin", read_message<ToRanks, Rejoin>},
    MessageReader{"prepared", read_message<ToRankZero, Prepared>},
    MessageReader{"fenced", read_message<ToRankZero, Fenced>},
    MessageReader{"applied", read_message<ToRankZero, Applied>},
    MessageReader{"call", read_message<ToRankZero, CallReport>},
    MessageReader{"end", read_message<ToRankZero, End>},
    MessageReader{"hash", read_message<ToRankZero, Hash>},
    MessageReader{"beat", read_message<ToRankZero, Beat>},
    MessageReader{"arrived", read_message<ToRankZero, Arrived>},
    MessageReader{"ready", read_message<ToRankZero, Ready>},
    MessageReader{"overdue", read_message<ToRankZero, Overdue>},
    MessageReader{"answer", read_message<ToRankZero, Answer>},
    MessageReader{"stop", read_message<ToRankZero, Stop>},
    MessageReader{"standing", read_message<ToRankZero, Standing>},
    MessageReader{"bye", read_message<ToRankZero, Bye>},
};
static_assert(kReaders.size() == std::variant_size_v<ToRanks> + std::variant_size_v<ToRankZero>);

template <class T, class... All>
constexpr std::size_t index_in(const std::variant<All...>* /*variant*/) {
  constexpr std::array kIs{std::is_same_v<T, All>...};
  return static_cast<std::size_t>(std::find(kIs.begin(), kIs.end(), true) - kIs.begin());
}

/// The `t` of a message to rank 0.
template <class T>
constexpr std::string_view kWordOf =
    kReaders[std::variant_size_v<ToRanks> + index_in<T>(static_cast<ToRankZero*>(nullptr))].word;

Json body_of(const Prepare& prepare) {
  FieldWriter field;
  field("ticket", prepare.ticket);
  field.unless_empty("withdraws", prepare.withdraws);
  if (prepare.withdraws == 0 && prepare.order) field("order", *prepare.order);
  return field.take();
}
template <class T>
Json body_of(const T& message) {
  return fields::write(message);
}

template <class Direction>
Json message_to_json(const Direction& message, std::size_t first_reader) {
  Json json = std::visit([](const auto& one) { return body_of(one); }, message);
  json["t"] = kReaders[first_reader + message.index()].word;
  return json;
}

}  // namespace

Json to_json(const ToRanks& message) {
  return message_to_json(message, 0);
}
Json to_json(const ToRankZero& message) {
  return message_to_json(message, std::variant_size_v<ToRanks>);
}

Result<std::variant<ToRanks, ToRankZero>> from_json(const Json& json) {
  if (!json.is_object()) return tl::unexpected(fields::wrong("an object").error());
  std::string word;
  FieldReader field(json);
  field("t", word);
  for (const MessageReader& reader : kReaders)
    if (reader.word == word) return reader.read(json);
  return fail(ErrorKind::usage, "unknown message '" + excerpt(word) + "'");
}

MessageBytes encoded(const ToRanks& message) {
  return std::make_shared<const std::vector<std::uint8_t>>(to_cbor(to_json(message)));
}
MessageBytes encoded(const ToRankZero& message) {
  return std::make_shared<const std::vector<std::uint8_t>>(to_cbor(to_json(message)));
}

namespace {

template <class T>
std::optional<ToRankZero> read_often(const CborMap& map) {
  if (auto message = read_cbor_fields<T>(map)) return ToRankZero(*std::move(message));
  return std::nullopt;
}

/// What comes from every rank all the time, or for each order. Nothing: something else, or something is wrong
/// with it.
std::optional<ToRankZero> read_often(std::span<const std::uint8_t> bytes) {
  const auto map = CborMap::of(bytes);
  const CborItem* const found = map ? map->find("t") : nullptr;
  const auto word = found != nullptr ? found->text() : std::nullopt;
  if (word == kWordOf<Beat>) return read_often<Beat>(*map);
  if (word == kWordOf<Prepared>) return read_often<Prepared>(*map);
  if (word == kWordOf<Fenced>) return read_often<Fenced>(*map);
  if (word == kWordOf<Applied>) return read_often<Applied>(*map);
  return std::nullopt;
}

}  // namespace

Result<std::variant<ToRanks, ToRankZero>> decoded(std::span<const std::uint8_t> bytes) {
  if (auto often = read_often(bytes)) return std::variant<ToRanks, ToRankZero>(*std::move(often));
  const auto json = from_cbor(bytes.data(), bytes.size());
  if (!json) return tl::unexpected(json.error());
  return from_json(*json);
}

Json to_json(const HandOver& handed) {
  return write_fields(handed);
}
Result<void> read_json(const Json& json, HandOver& handed) {
  return read_fields(json, handed);
}

}  // namespace message
}  // namespace footplate
