#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

#include "runtime/checkpoint/manifest.h"

namespace footplate {
namespace {

constexpr std::size_t kFileHashDigits = 64;

/// Whether `name` stays inside its folder and needs no quoting anywhere: a tag that may have dots in it.
bool is_file_name(std::string name) {
  if (name.size() > 1 && name.front() != '.') std::replace(name.begin(), name.end(), '.', '_');
  return is_tag(name);
}

bool is_hash(std::string_view text) {
  return text.size() == kFileHashDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// A whole number of at least `min`; throws what the caller turns into an error.
std::int64_t whole(const Json& json, const char* name, std::int64_t min) {
  const Json& value = json.at(name);
  if (!value.is_number_integer() || value.get<std::int64_t>() < min)
    throw std::runtime_error("field '" + std::string(name) + "' isn't a whole number of at least " +
                             std::to_string(min));
  return value.get<std::int64_t>();
}

const Json& object(const Json& json, const char* name) {
  const Json& value = json.at(name);
  if (!value.is_object()) throw std::runtime_error("field '" + std::string(name) + "' isn't an object");
  return value;
}

std::vector<ManifestFile> files_from(const Json& list) {
  std::vector<ManifestFile> files;
  std::set<std::string> names;
  if (!list.is_array() || list.empty()) throw std::runtime_error("it lists no files");
  for (const auto& item : list) {
    ManifestFile file{item.at("name").get<std::string>(), static_cast<std::uint64_t>(whole(item, "bytes", 1)),
                      item.at("sha256").get<std::string>()};
    if (!is_file_name(file.name) || file.name == kManifestName)
      throw std::runtime_error("'" + file.name + "' can't be a file of a checkpoint");
    if (!is_hash(file.sha256)) throw std::runtime_error(file.name + " has no SHA-256");
    if (!names.insert(file.name).second) throw std::runtime_error(file.name + " is listed twice");
    files.push_back(std::move(file));
  }
  return files;
}

Manifest manifest_from_json(const Json& json) {
  Manifest manifest;
  const std::int64_t format = whole(json, "format", 1);
  if (format != kCheckpointFormat)
    throw std::runtime_error("format " + std::to_string(format) + " isn't known; this program reads format " +
                             std::to_string(kCheckpointFormat));
  manifest.run = json.at("run").get<std::string>();
  if (json.contains("start")) manifest.start = whole(json, "start", 0);
  manifest.step = whole(json, "step", 0);
  const std::int64_t world_size = whole(json, "world_size", 1);
  if (world_size > std::numeric_limits<int>::max())
    throw std::runtime_error("field 'world_size' is too large");
  manifest.world_size = static_cast<int>(world_size);
  manifest.branch = json.at("branch").get<std::string>();
  manifest.tag = json.at("tag").get<std::string>();
  if (!is_tag(manifest.branch) || (!manifest.tag.empty() && !is_tag(manifest.tag)))
    throw std::runtime_error("its branch or tag isn't letters, digits, '_' and '-'");
  manifest.best = json.at("best").get<bool>();
  if (json.contains("best_evaluation")) {
    BestEvaluation best;
    if (const auto read = read_json(json.at("best_evaluation"), best); !read)
      throw std::runtime_error("field 'best_evaluation': " + read.error().message);
    manifest.best_evaluation = std::move(best);
  }
  if (json.contains("only_best")) manifest.only_best = json.at("only_best").get<bool>();
  manifest.created = json.at("created").get<std::string>();
  manifest.journal = static_cast<std::uint64_t>(whole(json, "journal", 0));
  manifest.files = files_from(json.at("files"));
  manifest.settings = object(json, "settings");
  manifest.progress = object(json, "progress");
  manifest.metrics = object(json, "metrics");
  if (json.contains("store")) manifest.store = object(json, "store");
  if (json.contains("orders")) manifest.orders = json.at("orders");
  if (!manifest.orders.is_array()) throw std::runtime_error("field 'orders' is no list");
  return manifest;
}

}  // namespace

Json to_json(const Manifest& manifest) {
  Json json = {{"format", kCheckpointFormat},   {"run", manifest.run},
               {"step", manifest.step},         {"world_size", manifest.world_size},
               {"branch", manifest.branch},     {"tag", manifest.tag},
               {"best", manifest.best},         {"created", manifest.created},
               {"journal", manifest.journal},   {"files", Json::array()},
               {"settings", manifest.settings}, {"progress", manifest.progress},
               {"metrics", manifest.metrics}};
  if (manifest.start > 0) json["start"] = manifest.start;
  if (manifest.best_evaluation) json["best_evaluation"] = to_json(*manifest.best_evaluation);
  if (manifest.only_best) json["only_best"] = true;
  if (!manifest.store.empty()) json["store"] = manifest.store;
  if (!manifest.orders.empty()) json["orders"] = manifest.orders;
  for (const auto& file : manifest.files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  return json;
}

Result<void> read_json(const Json& json, Manifest& manifest) {
  try {
    manifest = manifest_from_json(json);
    return {};
  } catch (const std::exception& error) {  // Json's own exceptions name the field that is missing or wrong
    return fail(ErrorKind::failed, std::string("the manifest can't be used: ") + error.what());
  }
}

}  // namespace footplate
