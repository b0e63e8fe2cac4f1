#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/messages/fields.h"
#include "protocol/value.h"

namespace footplate {

// Lines of a connection: objects whose `type` says which alternative of a variant they are. For the
// conversion files.

/// The word of T's lines, kWord, where they have T's fields beside `type`.
template <class T>
struct TypeWord;

template <class T>
Json typed_line(const T& message) {
  Json json = fields::write(message);
  json["type"] = TypeWord<T>::kWord;
  return json;
}

/// Lines of one type, and what reads them.
template <class Message>
struct LineReader {
  std::string_view type;
  Result<Message> (*read)(const Json& json);
};

/// Reads a line that has T's fields beside its type.
template <class Message, class T>
Result<Message> read_line(const Json& json) {
  T message{};
  if (auto read = fields::read(json, message); !read) return tl::unexpected(read.error());
  return Message(std::move(message));
}

/// Errors (usage): not an object, a type that `readers` lack, a field of the wrong type.
template <class Message, std::size_t count>
Result<Message> read_by_type(const std::array<LineReader<Message>, count>& readers, const Json& json) {
  if (!json.is_object()) return tl::unexpected(fields::wrong("an object").error());
  std::string type;
  FieldReader field(json);
  field("type", type);
  for (const LineReader<Message>& reader : readers)
    if (reader.type == type) return reader.read(json);
  return fail(ErrorKind::usage, "unknown message '" + excerpt(type) + "'");
}

}  // namespace footplate
