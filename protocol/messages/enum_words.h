#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace footplate {

/// The words of an enumeration on the wire and in files. Each has one table, `kAll`, an array of pairs of a
/// value and its word.
template <class Enum>
struct EnumWords;

template <class Enum>
concept Worded = requires {
  EnumWords<Enum>::kAll.begin();
};

/// The word of `value`.
template <Worded Enum>
constexpr std::string_view to_string(Enum value) {
  for (const auto& [one, word] : EnumWords<Enum>::kAll)
    if (one == value) return word;
  return "?";
}

/// The value with this word; nothing where there is none.
template <Worded Enum>
constexpr std::optional<Enum> from_word(std::string_view word) {
  for (const auto& [value, its] : EnumWords<Enum>::kAll)
    if (its == word) return value;
  return std::nullopt;
}

/// All words, for messages: "accepted, committed, applied".
template <Worded Enum>
std::string all_words() {
  std::string all;
  for (const auto& [value, word] : EnumWords<Enum>::kAll)
    all += (all.empty() ? "" : ", ") + std::string(word);
  return all;
}

}  // namespace footplate
