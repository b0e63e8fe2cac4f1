#include "protocol/order.h"

#include <array>
#include <cstdio>
#include <limits>
#include <type_traits>

namespace footplate {
namespace {

/// A value from JSON without its schema: lists are lists of numbers, tagged strings stay strings.
Result<Value> untyped_value(const Json& json) {
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer()) return value_from_json(json, Type::integer);
  if (json.is_number_float()) return Value(json.get<double>());
  if (json.is_string()) return Value(json.get<std::string>());
  if (json.is_array()) return value_from_json(json, Type::numbers);
  return fail(ErrorKind::usage, "a value has to be a boolean, a number, a string or a list of numbers");
}

/// Whether a whole number fits T, a signed type.
template <class T>
bool in_range(const Json& json) {
  constexpr auto kMax = std::numeric_limits<T>::max();
  if (json.is_number_unsigned()) return json.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMax);
  const auto number = json.get<std::int64_t>();
  return number >= std::numeric_limits<T>::min() && number <= kMax;
}

template <class T>
Result<T> field(const Json& json, const char* name, T missing) {
  const auto found = json.find(name);
  if (found == json.end()) return missing;
  // The library would make a number of a boolean, and any integer of any number.
  bool fits = true;
  if constexpr (std::is_unsigned_v<T>)
    fits = found->is_number_unsigned() || (found->is_number_integer() && found->get<std::int64_t>() >= 0);
  else if constexpr (std::is_integral_v<T>)
    fits = found->is_number_integer() && in_range<T>(*found);
  if (!fits) return fail(ErrorKind::usage, std::string("field '") + name + "' has the wrong type");
  try {
    return found->get<T>();
  } catch (const Json::exception&) {
    return fail(ErrorKind::usage, std::string("field '") + name + "' has the wrong type");
  }
}

std::string argument_text(const Json& json) {
  if (json.is_string()) return to_text(Value(json.get<std::string>()));
  if (json.is_number_float()) return shortest(json.get<double>());
  return json.dump();
}

std::string key_text(const std::string& name) {
  const bool plain = !name.empty() && name.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_") == std::string::npos;
  return plain ? name : "[" + Json(name).dump() + "]";
}

/// { optim = { lr_scale = 0.5 } }
std::string table_text(const Json& json) {
  if (!json.is_object()) {
    const auto value = untyped_value(json);
    return value ? to_text(*value) : json.dump();
  }
  std::string fields;
  for (const auto& [name, value] : json.items())
    fields += (fields.empty() ? "" : ", ") + key_text(name) + " = " + table_text(value);
  return "{ " + fields + " }";
}

/// Settings by their names, as the JSON text that an order has.
std::string settings_table(const std::string& text) {
  const Json settings = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!settings.is_object()) return argument_text(text);
  Json groups = Json::object();
  for (const auto& [name, value] : settings.items()) {
    Json* group = &groups;
    std::size_t from = 0;
    for (auto dot = name.find('.'); dot != std::string::npos && group->is_object();
         dot = name.find('.', from)) {
      group = &(*group)[name.substr(from, dot - from)];
      from = dot + 1;
      if (group->is_null()) *group = Json::object();
    }
    if (!group->is_object()) return argument_text(text);
    (*group)[name.substr(from)] = value;
  }
  return table_text(groups);
}

}  // namespace

bool Call::has(const char* name) const {
  const auto found = arguments.find(name);
  return found != arguments.end() && !found->is_null();
}

std::string Call::text(const char* name, std::string missing) const {
  const auto found = arguments.find(name);
  return found != arguments.end() && found->is_string() ? found->get<std::string>() : std::move(missing);
}

std::int64_t Call::integer(const char* name, std::int64_t missing) const {
  const auto found = arguments.find(name);
  return found != arguments.end() && found->is_number_integer() ? found->get<std::int64_t>() : missing;
}

bool Call::flag(const char* name, bool missing) const {
  const auto found = arguments.find(name);
  return found != arguments.end() && found->is_boolean() ? found->get<bool>() : missing;
}

std::string to_text(const Call& call) {
  std::string arguments;
  for (const auto& [name, value] : call.arguments.items())
    arguments += (arguments.empty() ? "" : ", ") + name + " = " + argument_text(value);
  return call.action + (arguments.empty() ? "()" : "{ " + arguments + " }");
}

std::string shown_text(const Call& call) {
  if (call.action == "run.store" && call.has("name")) {
    const std::string key = key_text(call.text("name")), value = call.text("value", "nil");
    return (key.starts_with('[') ? "store" : "store.") + key + " = " + (value == "null" ? "nil" : value);
  }
  if (call.action != "ckpt.load") return to_text(call);
  std::string arguments;
  for (const auto& [name, value] : call.arguments.items()) {
    if (value == "") continue;  // left out
    arguments += arguments.empty() ? "" : ", ";
    if (name == "set" && value.is_string())
      arguments += "set = " + settings_table(value.get<std::string>());
    else if (name == "skip_steps")
      arguments += "skip = { steps = " + argument_text(value) + " }";
    else
      arguments += name + " = " + argument_text(value);
  }
  return call.action + (arguments.empty() ? "()" : "{ " + arguments + " }");
}

Json to_json(const Order& order) {
  Json json = {{"id", order.id},         {"session", order.session}, {"user", order.user},
               {"source", order.source}, {"changes", Json::array()}, {"calls", Json::array()}};
  if (order.at_step) json["at_step"] = *order.at_step;
  for (const auto& change : order.changes) {
    Json item = {{"name", change.name}, {"value", to_json(change.value)}};
    if (change.expect) item["expect"] = to_json(*change.expect);
    json["changes"].push_back(std::move(item));
  }
  for (const auto& call : order.calls)
    json["calls"].push_back({{"action", call.action}, {"arguments", call.arguments}});
  return json;
}

Result<Order> order_from_json(const Json& json) {
  if (!json.is_object()) return fail(ErrorKind::usage, "an order has to be an object");
  Order order;
  const auto id = field<std::uint64_t>(json, "id", 0);
  const auto session = field<std::string>(json, "session", "");
  const auto user = field<std::string>(json, "user", "");
  const auto source = field<std::string>(json, "source", "");
  for (const auto* text : {&session, &user, &source})
    if (!*text) return tl::unexpected(text->error());
  if (!id) return tl::unexpected(id.error());
  order.id = *id;
  order.session = *session;
  order.user = *user;
  order.source = *source;
  if (json.contains("at_step")) {
    const auto step = field<std::int64_t>(json, "at_step", 0);
    if (!step) return fail(ErrorKind::usage, "field 'at_step' has to be a whole number");
    order.at_step = *step;
  }
  const Json none = Json::array();
  const Json& changes = json.contains("changes") ? json["changes"] : none;
  const Json& calls = json.contains("calls") ? json["calls"] : none;
  if (!changes.is_array() || !calls.is_array())
    return fail(ErrorKind::usage, "fields 'changes' and 'calls' have to be lists");
  for (const auto& item : changes) {
    if (!item.is_object() || !item.contains("name") || !item["name"].is_string() || !item.contains("value"))
      return fail(ErrorKind::usage, "a change has to have a name and a value");
    auto value = untyped_value(item["value"]);
    if (!value) return tl::unexpected(value.error());
    Change change{item["name"], *std::move(value), std::nullopt};
    if (item.contains("expect")) {
      auto expect = untyped_value(item["expect"]);
      if (!expect) return tl::unexpected(expect.error());
      change.expect = *std::move(expect);
    }
    order.changes.push_back(std::move(change));
  }
  for (const auto& item : calls) {
    if (!item.is_object() || !item.contains("action") || !item["action"].is_string())
      return fail(ErrorKind::usage, "a call has to name its action");
    order.calls.push_back({item["action"], item.value("arguments", Json::object())});
  }
  return order;
}

Json to_json(const Moved& moved) {
  return {{"name", moved.name}, {"before", to_json(moved.before)}, {"after", to_json(moved.after)}};
}

Json to_json(const Applied& applied) {
  Json json = {{"id", applied.id},         {"step", applied.step},
               {"ranks", applied.ranks},   {"world_size", applied.world_size},
               {"digest", applied.digest}, {"moved", Json::array()}};
  for (const auto& moved : applied.moved) json["moved"].push_back(to_json(moved));
  if (applied.renewed_s) json["renewed_s"] = *applied.renewed_s;
  return json;
}

std::string effect_text(const Applied& applied) {
  std::string text = applied.renewed_s ? "new communicators at step " : "applied at step ";
  text += std::to_string(applied.step) + " on " + std::to_string(applied.ranks) + "/" +
          std::to_string(applied.world_size) + " ranks";
  if (!applied.renewed_s) return text;
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), ", %.1f s", *applied.renewed_s);
  return text + seconds.data();
}

std::string given_by(const std::string& user, const std::string& session) {
  constexpr std::string_view kJob = "job:";
  const std::string begin = user.empty() ? "" : user + ", ";
  if (session.starts_with("rule ")) return begin + session;
  if (session.starts_with(kJob)) return begin + "job " + session.substr(kJob.size());
  return user;
}

Result<Applied> applied_from_json(const Json& json) {
  if (!json.is_object()) return fail(ErrorKind::usage, "a confirmation has to be an object");
  const auto id = field<std::uint64_t>(json, "id", 0);
  const auto step = field<std::int64_t>(json, "step", 0);
  const auto ranks = field<int>(json, "ranks", 0);
  const auto world_size = field<int>(json, "world_size", 0);
  const auto digest = field<std::string>(json, "digest", "");
  if (!id || !step || !ranks || !world_size || !digest)
    return fail(ErrorKind::usage, "a confirmation has a field of the wrong type");
  Applied applied{*id, *step, *ranks, *world_size, *digest, {}, std::nullopt};
  if (json.contains("renewed_s")) {
    if (!json["renewed_s"].is_number())
      return fail(ErrorKind::usage, "a confirmation has a field of the wrong type");
    applied.renewed_s = json["renewed_s"].get<double>();
  }
  for (const auto& item : json.value("moved", Json::array())) {
    Moved moved;
    if (!read_json(item, moved))
      return fail(ErrorKind::usage, "a confirmation has a field of the wrong type");
    applied.moved.push_back(std::move(moved));
  }
  return applied;
}

Result<void> read_json(const Json& json, Moved& moved) {
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string())
    return fail(ErrorKind::usage, "a moved setting has to have a name");
  auto before = untyped_value(json.value("before", Json()));
  auto after = untyped_value(json.value("after", Json()));
  if (!before || !after) return fail(ErrorKind::usage, "what a setting moved from and to has to be values");
  moved = {json["name"], *std::move(before), *std::move(after)};
  return {};
}

Result<void> read_json(const Json& json, Order& order) {
  return order_from_json(json).map([&](Order read) { order = std::move(read); });
}

Result<void> read_json(const Json& json, Applied& applied) {
  return applied_from_json(json).map([&](Applied read) { applied = std::move(read); });
}

}  // namespace footplate
