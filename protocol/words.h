#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace footplate {

// Numbers and lists in words, the same wherever people read them. What is to be typed again (the journal,
// --json) has exact values: shortest() of protocol/value.h. Any thread.

/// "a, b, c": the items with `between` between two of them; empty for none.
std::string join(const std::vector<std::string>& items, std::string_view between = ", ");

/// At most `digits` significant digits, whole numbers beyond those: "0.0003", "5e-5", "25600", "inf"; "-" for
/// one that isn't there or NaN.
std::string rounded(double value, int digits = 4);

/// Four decimals: "2.3149"; where that would show too little, or far too much, as rounded(). "nan" for NaN.
std::string loss_text(double value);

/// "42 s", "7 min", "3 h 12 min", "5 d 2 h": at most two units; "-" for a negative or unknown one.
std::string duration(double seconds);

/// "3.2 MB": a number of bytes, decimal units, three digits at most.
std::string size_text(std::uint64_t bytes);

/// The first bytes of `text`, at most so many, and no part of a character.
std::string_view first_bytes(std::string_view text, std::size_t bytes);

}  // namespace footplate
