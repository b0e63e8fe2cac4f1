#pragma once

#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "protocol/json.h"
#include "protocol/messages/enum_words.h"

namespace footplate {

// How a struct becomes a JSON object and is read from one: by one list of its fields, FieldsOf<T>::list, for
// both directions. nlohmann's own macros don't fit: they write an optional that is empty as null, and read an
// unknown word of an enumeration as its first one. Only the conversion files include this header; others use
// the to_json and read_json that are declared beside each struct. Any thread.

/// Its `static void list(auto& field, auto& message)` calls `field` with each name and member.
template <class T>
struct FieldsOf;

/// Reads `json` into `message` by the read_json that belongs to T.
template <class T>
Result<T> read_as(const Json& json) {
  T message{};
  if (auto read = read_json(json, message); !read) return tl::unexpected(read.error());
  return message;
}

namespace fields {

inline Json write(const Json& value) {
  return value;
}
inline Json write(const std::string& value) {
  return value;
}
inline Json write(bool value) {
  return value;
}
inline Json write(double value) {
  return number_to_json(value);
}
template <std::integral T>
Json write(T value) {
  return value;
}
template <Worded Enum>
Json write(Enum value) {
  return to_string(value);
}
template <class T>
Json write(const std::vector<T>& list);
template <class T>
Json write(const std::map<std::string, T>& map);
/// Whether T's list of fields is in this file; another's to_json and read_json are called.
template <class T>
concept Listed = requires {
  sizeof(FieldsOf<T>);
};

/// The answer is part of the function's type, as it differs from file to file.
template <class T, bool listed = Listed<T>>
requires std::is_class_v<T> Json write(const T& message);
template <class T>
Json write(const std::vector<T>& list) {
  Json json = Json::array();
  for (const T& item : list) json.push_back(write(item));
  return json;
}
template <class T>
Json write(const std::map<std::string, T>& map) {
  Json json = Json::object();
  for (const auto& [name, item] : map) json[name] = write(item);
  return json;
}

inline Result<void> wrong(const std::string& expected) {
  return fail(ErrorKind::usage, "has to be " + expected);
}

inline Result<void> read(const Json& json, Json& value) {
  value = json;
  return {};
}
inline Result<void> read(const Json& json, std::string& value) {
  if (!json.is_string()) return wrong("text");
  value = json.get<std::string>();
  return {};
}
inline Result<void> read(const Json& json, bool& value) {
  if (!json.is_boolean()) return wrong("true or false");
  value = json.get<bool>();
  return {};
}
inline Result<void> read(const Json& json, double& value) {
  const auto number = number_from_json(json);
  if (!number) return wrong("a number");
  value = *number;
  return {};
}
template <std::integral T>
Result<void> read(const Json& json, T& value) {
  // The library would make a number of a boolean, and any integer of any number. 10/2 is 5.0 in Lua: that
  // passes.
  if (json.is_number_float()) {
    constexpr double kExact = 9007199254740992.0;
    const double number = json.get<double>();
    if (!(std::abs(number) <= kExact) || number != std::trunc(number)) return wrong("a whole number");
    return read(Json(static_cast<std::int64_t>(number)), value);
  }
  if (!json.is_number_integer()) return wrong("a whole number");
  const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                              : std::in_range<T>(json.get<std::int64_t>());
  if (!fits) return wrong("a whole number in range");
  value = json.get<T>();
  return {};
}
template <Worded Enum>
Result<void> read(const Json& json, Enum& value) {
  const auto known = json.is_string() ? from_word<Enum>(json.get<std::string>()) : std::nullopt;
  if (!known) return wrong("one of " + all_words<Enum>());
  value = *known;
  return {};
}
template <class T>
Result<void> read(const Json& json, std::vector<T>& list);
template <class T>
Result<void> read(const Json& json, std::map<std::string, T>& map);
template <class T, bool listed = Listed<T>>
requires std::is_class_v<T> Result<void> read(const Json& json, T& message);
template <class T>
Result<void> read(const Json& json, std::vector<T>& list) {
  if (!json.is_array()) return wrong("a list");
  list.clear();
  for (const Json& item : json) {
    T value{};
    if (auto done = read(item, value); !done) return done;
    list.push_back(std::move(value));
  }
  return {};
}
template <class T>
Result<void> read(const Json& json, std::map<std::string, T>& map) {
  if (!json.is_object()) return wrong("an object");
  map.clear();
  for (const auto& [name, item] : json.items())
    if (auto done = read(item, map[name]); !done) return done;
  return {};
}

}  // namespace fields

/// Makes the object. An optional member without a value is left out.
class FieldWriter {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    json_[name] = fields::write(value);
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>& value) {
    if (value) json_[name] = fields::write(*value);
  }
  /// Null where it has no value.
  template <class T>
  void nullable(const char* name, const std::optional<T>& value) {
    json_[name] = value ? fields::write(*value) : Json();
  }
  /// Left out where it is as in a struct that nobody filled: no text, false, an empty list.
  template <class T>
  void unless_empty(const char* name, const T& value) {
    if (value != T{}) json_[name] = fields::write(value);
  }
  /// Left out where it has no items.
  template <class T>
  void unless_none(const char* name, const T& value) {
    if (!value.empty()) json_[name] = fields::write(value);
  }
  template <class T>
  void required(const char* name, const T& value) {
    (*this)(name, value);
  }
  Json take() { return std::move(json_); }

 private:
  Json json_ = Json::object();
};

/// Reads the object. What it lacks, or has as null, stays as it is; the first field of a wrong type is the
/// error.
class FieldReader {
 public:
  explicit FieldReader(const Json& json) : json_(json) {}

  template <class T>
  void operator()(const char* name, T& value) {
    if (!result_) return;
    const auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return;
    if (auto done = fields::read(*found, value); !done)
      result_ = fail(ErrorKind::usage, std::string("field '") + name + "' " + done.error().message);
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& value) {
    const auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return value.reset();
    T read{};
    (*this)(name, read);
    value = std::move(read);
  }
  template <class T>
  void nullable(const char* name, std::optional<T>& value) {
    (*this)(name, value);
  }
  template <class T>
  void unless_empty(const char* name, T& value) {
    (*this)(name, value);
  }
  template <class T>
  void unless_none(const char* name, T& value) {
    (*this)(name, value);
  }
  /// An error where it is missing.
  template <class T>
  void required(const char* name, T& value) {
    const auto found = json_.find(name);
    if (result_ && (found == json_.end() || found->is_null()))
      result_ = fail(ErrorKind::usage, std::string("field '") + name + "' is missing");
    (*this)(name, value);
  }
  Result<void> take() { return std::move(result_); }

 private:
  const Json& json_;
  Result<void> result_;
};

/// Reads the object as FieldReader does, and passes over fields of a wrong type: for files, which nobody can
/// be asked to send again.
class TolerantReader {
 public:
  explicit TolerantReader(const Json& json) : json_(json) {}

  template <class T>
  void operator()(const char* name, T& value) {
    const auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return;
    if (T read{}; fields::read(*found, read)) value = std::move(read);
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& value) {
    const auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return;
    if (T read{}; fields::read(*found, read)) value = std::move(read);
  }
  template <class T>
  void nullable(const char* name, std::optional<T>& value) {
    (*this)(name, value);
  }
  template <class T>
  void unless_empty(const char* name, T& value) {
    (*this)(name, value);
  }

 private:
  const Json& json_;
};

/// The object with all fields of `message`.
template <class T>
Json write_fields(const T& message) {
  FieldWriter writer;
  FieldsOf<T>::list(writer, message);
  return writer.take();
}

/// Error (usage): not an object, or the first field of a wrong type.
template <class T>
Result<void> read_fields(const Json& json, T& message) {
  if (!json.is_object()) return fields::wrong("an object");
  FieldReader reader(json);
  FieldsOf<T>::list(reader, message);
  return reader.take();
}

/// What `json` has of a T; the rest as in a T that nobody filled.
template <class T>
T read_tolerantly(const Json& json) {
  T message{};
  if (!json.is_object()) return message;
  TolerantReader reader(json);
  FieldsOf<T>::list(reader, message);
  return message;
}

namespace fields {

template <class T, bool listed>
requires std::is_class_v<T> Json write(const T& message) {
  if constexpr (listed)
    return write_fields(message);
  else
    return to_json(message);
}

template <class T, bool listed>
requires std::is_class_v<T> Result<void> read(const Json& json, T& message) {
  if constexpr (listed)
    return read_fields(json, message);
  else
    return read_json(json, message);
}

}  // namespace fields

}  // namespace footplate
