#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <utility>

#include "protocol/cbor_map.h"
#include "protocol/messages/enum_words.h"
#include "protocol/messages/fields.h"

namespace footplate {

// The way from CBOR to a struct without JSON in between, by the same list of fields. It reads what
// FieldReader reads of what was written here, and gives up on anything else: then the way through JSON
// counts, and has the error's words. Any thread.

/// Whether it could be read. Others than these are beside their types, as read_json is.
inline bool read_cbor(const CborItem& item, std::string& value) {
  const auto text = item.text();
  if (text) value.assign(*text);
  return text.has_value();
}
inline bool read_cbor(const CborItem& item, bool& value) {
  const auto flag = item.boolean();
  value = flag.value_or(value);
  return flag.has_value();
}
inline bool read_cbor(const CborItem& item, double& value) {
  const auto number = item.number();
  value = number.value_or(value);
  return number.has_value();
}
template <std::integral T>
bool read_cbor(const CborItem& item, T& value) {
  const auto number = [&] {
    if constexpr (std::unsigned_integral<T>)
      return item.non_negative();
    else
      return item.integer();
  }();
  if (!number || !std::in_range<T>(*number)) return false;
  value = static_cast<T>(*number);
  return true;
}
template <Worded Enum>
bool read_cbor(const CborItem& item, Enum& value) {
  const auto text = item.text();
  const auto known = text ? from_word<Enum>(*text) : std::nullopt;
  value = known.value_or(value);
  return known.has_value();
}
template <class T>
requires fields::Listed<T>
bool read_cbor(const CborItem& item, T& message);

/// Reads the object. What it lacks stays as it is.
class CborReader {
 public:
  explicit CborReader(const CborMap& map) : map_(map) {}

  template <class T>
  void operator()(const char* name, T& value) {
    const CborItem* found = map_.find(name);
    if (found == nullptr) return;
    if constexpr (requires { read_cbor(*found, value); })
      done_ = done_ && read_cbor(*found, value);
    else
      done_ = false;  // what JSON alone is read to
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& value) {
    if (map_.find(name) == nullptr) return value.reset();
    (*this)(name, value.emplace());
  }
  template <class T>
  void unless_empty(const char* name, T& value) {
    (*this)(name, value);
  }
  /// Whether all of it could be read.
  bool is_done() const { return done_; }

 private:
  const CborMap& map_;
  bool done_ = true;
};

/// Nothing: it can't be read without JSON.
template <class T>
std::optional<T> read_cbor_fields(const CborMap& map) {
  T message{};
  CborReader reader(map);
  FieldsOf<T>::list(reader, message);
  return reader.is_done() ? std::optional(std::move(message)) : std::nullopt;
}

template <class T>
requires fields::Listed<T>
bool read_cbor(const CborItem& item, T& message) {
  const auto map = CborMap::of(item);
  if (!map) return false;
  CborReader reader(*map);
  FieldsOf<T>::list(reader, message);
  return reader.is_done();
}

}  // namespace footplate
