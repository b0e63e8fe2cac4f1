#include "protocol/store.h"

#include "protocol/json_fields.h"

namespace footplate {
namespace {

constexpr std::size_t kMaxName = 128;
constexpr const char* kKept = "@keep";  ///< in the store: the names that are kept, each with true
constexpr int kLevels = 32;             ///< of a value: manifests and events have it inside

/// Anything else in its place, as a checkpoint of before 0.3 may have it, is none.
Json& kept_names(Json& store) {
  Json& names = store[kKept];
  if (!names.is_object()) names = Json::object();
  return names;
}

}  // namespace

Result<void> put_in_store(Json& store, const std::string& name, const Json& value) {
  if (name.empty() || name.size() > kMaxName)
    return fail(ErrorKind::usage, "a name in store has 1 to " + std::to_string(kMaxName) + " bytes");
  Json after = store;
  if (value.is_null())
    after.erase(name);
  else
    after[name] = value;
  const std::size_t bytes = after.dump(-1, ' ', false, Json::error_handler_t::replace).size();
  if (bytes > kMaxStoreBytes)
    return fail(ErrorKind::usage, "store." + name + " would make store " + std::to_string(bytes) +
                                      " bytes long; it may have " + std::to_string(kMaxStoreBytes) +
                                      ", because every checkpoint carries it");
  store = std::move(after);
  return {};
}

Result<void> apply_store(Json& store, const Json& arguments) {
  const std::string text = text_of(arguments, "value");
  if (text.size() > kMaxStoreBytes)
    return fail(ErrorKind::usage, "run.store's value has " + std::to_string(text.size()) +
                                      " bytes; store may have " + std::to_string(kMaxStoreBytes));
  const auto value = parse_line(text, kLevels);
  if (!value)
    return fail(ErrorKind::usage, "run.store takes its value as JSON text of at most " +
                                      std::to_string(kLevels) + " levels: " + value.error().message +
                                      "; store.x = … does that by itself");
  const std::string name = text_of(arguments, "name");
  if (name == kKept)
    return fail(ErrorKind::usage,
                "store." + name + " is footplate's own: store.set{ NAME = VALUE, keep = true } keeps a name");
  if (auto put = put_in_store(store, name, *value); !put) return put;
  if (!value->is_null() && flag_of(arguments, "keep")) kept_names(store)[name] = true;
  if (value->is_null() && store.contains(kKept)) kept_names(store).erase(name);
  return {};
}

Json kept_in_store(const Json& store) {
  Json kept = Json::object();
  if (!store.contains(kKept) || !store[kKept].is_object()) return kept;
  for (const auto& [name, yes] : store[kKept].items())
    if (const auto found = store.find(name); found != store.end()) kept[name] = *found;
  return kept;
}

void take_kept(Json& store, const Json& kept) {
  if (!kept.is_object()) return;
  for (const auto& [name, value] : kept.items()) {
    store[name] = value;
    kept_names(store)[name] = true;
  }
}

}  // namespace footplate
