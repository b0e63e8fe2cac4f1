#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/result.h"

#ifndef __OPTIMIZE__  // made once, in json.cpp: a fifth of the time that a test takes to compile
extern template class nlohmann::basic_json<>;
#endif

namespace footplate {

/// The one JSON type. Objects keep their keys sorted, so equal values have equal text.
using Json = nlohmann::json;

/// Version of the wire format between all of footplate's programs (docs/protocol.md).
inline constexpr int kProtocolVersion = 1;

/// Longest line (one JSON object and its newline) on any socket, in bytes.
inline constexpr std::size_t kMaxFrameBytes = 1 << 20;

/// A number as JSON. JSON has no NaN and no infinity: they become the tagged strings
/// "@nan", "@inf" and "@-inf", so that a diverged loss doesn't vanish as null.
Json number_to_json(double value);

/// The inverse of number_to_json; nothing if `json` is neither a number nor a tagged string.
std::optional<double> number_from_json(const Json& json);

/// One line, newline included. Invalid UTF-8 is replaced by U+FFFD, never thrown on.
std::string to_line(const Json& json);

/// Nesting of a line that is read. What is kept inside other JSON may have fewer levels.
inline constexpr int kMaxLevels = 64;

/// Parses one line. Errors: not JSON, or nested deeper than `levels`.
Result<Json> parse_line(std::string_view line, int levels = kMaxLevels);

/// "usage", "script", …: a kind's word in messages.
std::string_view to_string(ErrorKind kind);

/// {"kind","message"}. error_from_json also takes plain text; an unknown kind is `failed`.
Json to_json(const Error& error);
Error error_from_json(const Json& json);

/// CBOR, as sent between ranks. from_cbor refuses malformed and truncated input, and what is nested
/// deeper than 64 levels.
std::vector<std::uint8_t> to_cbor(const Json& json);
Result<Json> from_cbor(const std::uint8_t* data, std::size_t size);

}  // namespace footplate
