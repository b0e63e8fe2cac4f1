#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace footplate {

/// CBOR read where it lies, for messages that come too often to make JSON of each. It takes what to_cbor()
/// writes of small objects; what is nothing here goes the way through from_cbor(), which says what is wrong.
/// Nothing is copied: the bytes outlive it. Any thread.
class CborItem {
 public:
  CborItem() = default;
  std::optional<bool> boolean() const;
  /// Integers only.
  std::optional<std::uint64_t> non_negative() const;
  std::optional<std::int64_t> integer() const;
  /// Also what is an integer. Not the tagged texts of number_to_json().
  std::optional<double> number() const;
  std::optional<std::string_view> text() const;

 private:
  friend class CborMap;
  friend class CborPair;
  CborItem(const std::uint8_t* data, const std::uint8_t* end) : data_(data), end_(end) {}
  std::size_t size() const { return static_cast<std::size_t>(end_ - data_); }

  const std::uint8_t* data_ = nullptr;
  const std::uint8_t* end_ = nullptr;
};

/// An object of few fields.
class CborMap {
 public:
  static constexpr std::size_t kMost = 16;
  /// Nothing: it is something else, has more than kMost fields, or doesn't end where the bytes do.
  static std::optional<CborMap> of(std::span<const std::uint8_t> bytes);
  static std::optional<CborMap> of(const CborItem& item);

  /// Null: it has no such field. Of two with the same name the last one, as from_cbor() has it.
  const CborItem* find(std::string_view name) const;

 private:
  struct Field {
    std::string_view name;
    CborItem value;
  };
  std::array<Field, kMost> fields_;
  std::size_t size_ = 0;
};

/// A list of two.
class CborPair {
 public:
  /// Nothing: it is something else.
  static std::optional<CborPair> of(const CborItem& item);
  CborItem first, second;
};

}  // namespace footplate
