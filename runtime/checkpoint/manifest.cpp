#include "runtime/checkpoint/manifest.h"

#include <utility>

#include "runtime/checkpoint/sha256.h"

namespace footplate {
namespace {

// How the text ends: its hash is found by counting from the end, before any JSON is believed.
constexpr std::string_view kHashOpens = "\"sha256\": \"";
constexpr std::string_view kHashCloses = "\"\n}\n";
constexpr std::size_t kHashDigits = 64;
constexpr std::size_t kTailBytes = kHashOpens.size() + kHashDigits + kHashCloses.size();

std::string hash_of(std::string_view text) {
  return sha256_hex(std::as_bytes(std::span(text)));
}

/// The text before its hash, or nothing where the hash isn't that text's.
Result<void> check_hash(std::string_view text) {
  if (text.size() < kTailBytes) return fail(ErrorKind::failed, "the manifest is cut off");
  const std::string_view body = text.substr(0, text.size() - kTailBytes);
  const std::string_view tail = text.substr(body.size());
  if (tail.substr(0, kHashOpens.size()) != kHashOpens || !tail.ends_with(kHashCloses))
    return fail(ErrorKind::failed, "the manifest is cut off, or doesn't end with its hash");
  if (tail.substr(kHashOpens.size(), kHashDigits) != hash_of(body))
    return fail(ErrorKind::failed, "the manifest's hash doesn't fit its content");
  return {};
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  std::string text = to_json(manifest).dump(2, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // "\n}", which comes again after the hash
  text += ",\n  ";
  const std::string hash = hash_of(text);
  return text + std::string(kHashOpens) + hash + std::string(kHashCloses);
}

Result<Manifest> manifest_from_text(std::string_view text) {
  if (auto hash = check_hash(text); !hash) return tl::unexpected(hash.error());
  const auto json = parse_line(text);
  if (!json || !json->is_object()) return fail(ErrorKind::failed, "the manifest isn't a JSON object");
  Manifest manifest;
  return read_json(*json, manifest).map([&] { return std::move(manifest); });
}

}  // namespace footplate
