#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "protocol/messages/event.h"
#include "protocol/messages/session_messages.h"
#include "protocol/schema.h"

namespace footplate {

// What a client and a run's console tell each other (docs/protocol.md, "Clients and the console"). None of
// the readings throws. Any thread.

/// The server's first line.
struct ConsoleHello {
  std::string product;
  Json protocol;  ///< a number, where it is footplate's
  std::string session;
  Role role = Role::admin;
};
Result<void> read_json(const Json& json, ConsoleHello& hello);

/// An operation, and its fields.
struct ClientRequest {
  std::string op;
  Json fields = Json::object();
};
Json to_json(const ClientRequest& request, int id);

/// What comes of a request.
struct RequestAnswer {
  Json id;
  Result<Json> value = Json();  ///< each operation has its own
};

/// The running chunk waits for an answer.
struct ChunkQuestion {
  std::int64_t question = 0;  ///< number
  std::string text;
};

/// An event of a later version, or one that can't be read.
struct UnknownEvent {
  std::string topic;
  std::string text;        ///< for people; empty: it has none
  std::uint64_t lost = 0;  ///< as in Event
};

/// Nothing: a line that this build doesn't know.
using ConsoleLine =
    std::variant<std::monostate, RequestAnswer, ChunkOutput, ChunkQuestion, Event, UnknownEvent>;
ConsoleLine console_line_from_json(const Json& json);

/// The value of an answer as a T. Errors: the answer's own; (failed) the value isn't one.
template <class T>
Result<T> answer_as(const Result<Json>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  T value{};
  if (auto read = read_json(*answer, value); !read)
    return fail(ErrorKind::failed, "the console's answer can't be read: " + read.error().message);
  return value;
}

// --- answers of operations ---

/// Of eval.
struct EvalAnswer {
  std::string text;  ///< the rendered value
  Json value;
};
Result<void> read_json(const Json& json, EvalAnswer& answer);

/// Of orders: open ones first. One that can't be read is passed over.
struct OrdersAnswer {
  std::vector<OrderReport> reports;
};
Result<void> read_json(const Json& json, OrdersAnswer& answer);

/// Of attach.
struct AttachAnswer {
  struct Other {
    std::string session;  ///< "s3"
    std::string user;
    std::string from;  ///< where the person sits
  };
  std::vector<Other> others;
};
Result<void> read_json(const Json& json, AttachAnswer& answer);

/// Of role.
struct RoleAnswer {
  Role role = Role::admin;
};
Result<void> read_json(const Json& json, RoleAnswer& answer);

/// Of help.
struct HelpAnswer {
  std::string text;
};
Result<void> read_json(const Json& json, HelpAnswer& answer);

/// Of complete.
struct CompleteAnswer {
  struct Item {
    std::string text;
    std::string note;
  };
  std::size_t start = 0;  ///< byte where the unfinished name begins
  std::vector<Item> items;
  bool in_text = false;  ///< of a string or a comment
};
Result<void> read_json(const Json& json, CompleteAnswer& answer);

}  // namespace footplate
