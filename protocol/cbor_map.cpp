#include "protocol/cbor_map.h"

#include <bit>
#include <limits>

namespace footplate {
namespace {

// The first byte of an item: its kind in three bits, then its number, or how many bytes that takes.
constexpr std::uint8_t kNonNegative = 0, kNegative = 1, kText = 3, kList = 4, kMap = 5, kSimple = 7;
constexpr std::uint8_t kFalse = 20, kTrue = 21, kNothing = 22, kFloat = 26, kDouble = 27;

/// Lists and maps within each other that are passed over.
constexpr int kMostLevels = 8;

struct Head {
  std::uint8_t kind = 0;
  std::uint8_t form = 0;  ///< the lower five bits
  std::uint64_t number = 0;
};

/// Reads it and moves `at` behind it. Nothing: indefinite lengths, or the bytes end.
std::optional<Head> head(const std::uint8_t*& at, const std::uint8_t* end) {
  if (at == end) return std::nullopt;
  Head head{static_cast<std::uint8_t>(*at >> 5), static_cast<std::uint8_t>(*at & 31), 0};
  ++at;
  if (head.form < 24) {
    head.number = head.form;
    return head;
  }
  if (head.form > 27) return std::nullopt;
  const std::ptrdiff_t bytes = std::ptrdiff_t{1} << (head.form - 24);
  if (end - at < bytes) return std::nullopt;
  for (std::ptrdiff_t i = 0; i < bytes; ++i) head.number = head.number << 8 | *at++;
  return head;
}

/// Moves `at` behind one item. Whether there was one that can be read here.
bool pass(const std::uint8_t*& at, const std::uint8_t* end, int levels) {
  const auto one = head(at, end);
  if (!one || levels == 0) return false;
  switch (one->kind) {
    case kNonNegative:
    case kNegative:
      return true;
    case kText:
      if (one->number > static_cast<std::uint64_t>(end - at)) return false;
      at += one->number;
      return true;
    case kList:
      for (std::uint64_t i = 0; i < one->number; ++i)
        if (!pass(at, end, levels - 1)) return false;
      return true;
    case kMap:
      for (std::uint64_t i = 0; i < one->number; ++i)
        if (at == end || *at >> 5 != kText || !pass(at, end, levels - 1) || !pass(at, end, levels - 1))
          return false;
      return true;
    case kSimple:
      return one->form == kFalse || one->form == kTrue || one->form == kNothing || one->form == kFloat ||
             one->form == kDouble;
    default:
      return false;
  }
}

}  // namespace

std::optional<bool> CborItem::boolean() const {
  if (size() != 1 || data_[0] >> 5 != kSimple) return std::nullopt;
  const std::uint8_t form = data_[0] & 31;
  if (form != kFalse && form != kTrue) return std::nullopt;
  return form == kTrue;
}

std::optional<std::uint64_t> CborItem::non_negative() const {
  const std::uint8_t* at = data_;
  const auto one = head(at, end_);
  if (!one || one->kind != kNonNegative) return std::nullopt;
  return one->number;
}

std::optional<std::int64_t> CborItem::integer() const {
  const std::uint8_t* at = data_;
  const auto one = head(at, end_);
  if (!one || (one->kind != kNonNegative && one->kind != kNegative)) return std::nullopt;
  if (one->number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  const auto number = static_cast<std::int64_t>(one->number);
  return one->kind == kNonNegative ? number : -1 - number;
}

std::optional<double> CborItem::number() const {
  const std::uint8_t* at = data_;
  const auto one = head(at, end_);
  if (!one) return std::nullopt;
  if (one->kind == kNonNegative) return static_cast<double>(one->number);
  if (one->kind == kSimple && one->form == kDouble) return std::bit_cast<double>(one->number);
  if (one->kind == kSimple && one->form == kFloat)
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(one->number)));
  const auto whole = integer();
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

std::optional<std::string_view> CborItem::text() const {
  const std::uint8_t* at = data_;
  const auto one = head(at, end_);
  if (!one || one->kind != kText) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(at), static_cast<std::size_t>(end_ - at));
}

std::optional<CborMap> CborMap::of(std::span<const std::uint8_t> bytes) {
  return of(CborItem(bytes.data(), bytes.data() + bytes.size()));
}

std::optional<CborMap> CborMap::of(const CborItem& item) {
  const std::uint8_t* at = item.data_;
  const auto one = head(at, item.end_);
  if (!one || one->kind != kMap || one->number > kMost) return std::nullopt;
  CborMap map;
  for (std::uint64_t i = 0; i < one->number; ++i) {
    Field& field = map.fields_[map.size_++];
    const auto name = head(at, item.end_);
    if (!name || name->kind != kText || name->number > static_cast<std::uint64_t>(item.end_ - at))
      return std::nullopt;
    field.name = std::string_view(reinterpret_cast<const char*>(at), name->number);
    at += name->number;
    const std::uint8_t* const begin = at;
    if (!pass(at, item.end_, kMostLevels)) return std::nullopt;
    field.value = CborItem(begin, at);
  }
  if (at != item.end_) return std::nullopt;
  return map;
}

const CborItem* CborMap::find(std::string_view name) const {
  for (std::size_t i = size_; i > 0; --i)
    if (fields_[i - 1].name == name) return &fields_[i - 1].value;
  return nullptr;
}

std::optional<CborPair> CborPair::of(const CborItem& item) {
  const std::uint8_t* at = item.data_;
  const auto one = head(at, item.end_);
  if (!one || one->kind != kList || one->number != 2) return std::nullopt;
  const std::uint8_t* const begin = at;
  if (!pass(at, item.end_, kMostLevels)) return std::nullopt;
  CborPair pair;
  pair.first = CborItem(begin, at);
  pair.second = CborItem(at, item.end_);
  return pair;
}

}  // namespace footplate
