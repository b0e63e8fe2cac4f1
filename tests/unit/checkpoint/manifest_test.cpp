#include "runtime/checkpoint/manifest.h"

#include "fixture.h"
#include "runtime/checkpoint/sha256.h"

namespace footplate {
namespace {

Manifest full() {
  Manifest manifest = test::manifest_at(1000, "before-spike");
  manifest.best = true;
  manifest.created = "2026-11-20T19:30:00.000Z";
  manifest.files = {{"rank-0.safetensors", 123, std::string(64, 'a')}};
  return manifest;
}

/// The text of a manifest after `edit`, with a hash that fits again.
std::string forged(const std::function<void(Json&)>& edit) {
  Json json = Json::parse(to_text(full()));
  json.erase("sha256");
  edit(json);
  std::string text = json.dump(2);
  text.resize(text.size() - 2);
  text += ",\n  ";
  return text + "\"sha256\": \"" + sha256_hex(std::as_bytes(std::span(text))) + "\"\n}\n";
}

std::string refusal(const std::string& text) {
  const auto manifest = manifest_from_text(text);
  return manifest ? "accepted" : manifest.error().message;
}

TEST(Manifest, RoundTrip) {
  const auto manifest = manifest_from_text(to_text(full()));
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->run, "a1b2");
  EXPECT_EQ(manifest->step, 1000);
  EXPECT_EQ(manifest->world_size, 2);
  EXPECT_EQ(manifest->branch, "main");
  EXPECT_EQ(manifest->tag, "before-spike");
  EXPECT_TRUE(manifest->best);
  EXPECT_EQ(manifest->created, full().created);
  EXPECT_EQ(manifest->journal, 7u);
  ASSERT_EQ(manifest->files.size(), 1u);
  EXPECT_EQ(manifest->files[0].name, "rank-0.safetensors");
  EXPECT_EQ(manifest->files[0].bytes, 123u);
  EXPECT_EQ(manifest->settings, full().settings);
  EXPECT_EQ(manifest->progress, full().progress);
  EXPECT_EQ(manifest->metrics, full().metrics);
  EXPECT_TRUE(manifest->store.empty());
  EXPECT_EQ(to_text(*manifest), to_text(full()));
  Manifest with_store = full();
  with_store.store = {{"best", 1.5}};
  EXPECT_EQ(manifest_from_text(to_text(with_store))->store, with_store.store);
  EXPECT_EQ(manifest->start, 0) << "as in older ones";
  Manifest with_start = full();
  with_start.start = 3;
  EXPECT_EQ(manifest_from_text(to_text(with_start))->start, 3);
}

TEST(Manifest, IsJsonWhoseHashCoversEverythingBeforeIt) {
  const std::string text = to_text(full());
  const std::string hash = Json::parse(text)["sha256"];
  const std::string body = text.substr(0, text.find("\"sha256\": \"" + hash));
  EXPECT_EQ(sha256_hex(std::as_bytes(std::span(body))), hash);
}

TEST(Manifest, EveryFlippedBitIsRefused) {
  const std::string text = to_text(full());
  for (std::size_t i = 0; i < text.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      ASSERT_FALSE(manifest_from_text(damaged)) << "byte " << i << " bit " << bit;
    }
}

TEST(Manifest, EveryCutAndEveryAdditionIsRefused) {
  const std::string text = to_text(full());
  for (std::size_t length = 0; length < text.size(); ++length)
    ASSERT_FALSE(manifest_from_text(text.substr(0, length))) << length;
  EXPECT_FALSE(manifest_from_text(text + " "));
  EXPECT_FALSE(manifest_from_text(text + text));
}

TEST(Manifest, RefusesWhatItCantMean) {
  EXPECT_EQ(refusal(forged([](Json&) {})), "accepted");
  EXPECT_NE(refusal(forged([](Json& j) {
              j["format"] = 2;
            })).find("format 2 isn't known; this program reads format 1"),
            std::string::npos);
  EXPECT_NE(refusal(forged([](Json& j) { j.erase("step"); })).find("step"), std::string::npos);
  EXPECT_NE(
      refusal(forged([](Json& j) { j["step"] = -1; })).find("'step' isn't a whole number of at least 0"),
      std::string::npos);
  EXPECT_NE(refusal(forged([](Json& j) { j["step"] = 1.5; })).find("'step'"), std::string::npos);
  EXPECT_NE(refusal(forged([](Json& j) { j["step"] = 1ull << 63; })).find("'step'"), std::string::npos);
  EXPECT_NE(refusal(forged([](Json& j) { j["world_size"] = 0; })).find("'world_size'"), std::string::npos);
  EXPECT_NE(refusal(forged([](Json& j) { j["world_size"] = 1ll << 40; })).find("'world_size' is too large"),
            std::string::npos);
  EXPECT_NE(refusal(forged([](Json& j) { j["tag"] = "../up"; })).find("branch or tag"), std::string::npos);
  EXPECT_NE(refusal(forged([](Json& j) { j["branch"] = ""; })).find("branch or tag"), std::string::npos);
  EXPECT_NE(refusal(forged([](Json& j) { j["settings"] = 1; })).find("'settings' isn't an object"),
            std::string::npos);
  EXPECT_NE(refusal(forged([](Json& j) { j["files"] = Json::array(); })).find("lists no files"),
            std::string::npos);
  for (const char* name : {"../x", "a/b", ".hidden", "", "manifest.json", "a\nb", "/etc/passwd"})
    EXPECT_NE(refusal(forged([&](Json& j) { j["files"][0]["name"] = name; })).find("can't be a file"),
              std::string::npos)
        << name;
  EXPECT_NE(
      refusal(forged([](Json& j) { j["files"][0]["sha256"] = std::string(64, 'A'); })).find("has no SHA-256"),
      std::string::npos);
  EXPECT_NE(refusal(forged([](Json& j) { j["files"].push_back(j["files"][0]); })).find("listed twice"),
            std::string::npos);
}

TEST(Manifest, UnknownFieldsAreIgnored) {
  EXPECT_EQ(refusal(forged([](Json& j) { j["written_by"] = "a later version"; })), "accepted");
}

TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::string abc = "abc";
  EXPECT_EQ(sha256_hex(std::as_bytes(std::span(abc))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace footplate
