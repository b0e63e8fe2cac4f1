#include "protocol/store.h"

#include "protocol/json_fields.h"

namespace footplate {
namespace {

constexpr std::size_t kMaxName = 128;
constexpr int kLevels = 32;  ///< of a value: manifests and events have it inside

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
  return put_in_store(store, text_of(arguments, "name"), *value);
}

}  // namespace footplate
