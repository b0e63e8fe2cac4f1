// Manifests: the text as it is, and with a hash that fits, so that what lies behind the hash is met too.
#include "protocol/json.h"
#include "require.h"
#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/sha256.h"

using namespace footplate;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  manifest_from_text(text);
  if (const auto name = parse_folder_name(text))
    require(text.starts_with(folder_name(name->step, name->tag)), "a folder's name has one spelling");
  const std::string forged = text + "\"sha256\": \"" + sha256_hex(std::as_bytes(std::span(text))) + "\"\n}\n";
  const auto manifest = manifest_from_text(forged);
  if (!manifest) return 0;
  for (const auto& file : manifest->files)
    require(file.name.find('/') == std::string::npos && file.name.front() != '.',
            "files stay in their folder");
  const auto again = manifest_from_text(to_text(*manifest));
  require(again && to_text(*again) == to_text(*manifest), "a manifest survives its text");
  return 0;
}
