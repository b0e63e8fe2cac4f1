#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "console/host/automation/automation.h"

// Registering the rules of chunks, and rules.json: what a new console goes on with.

namespace footplate::host {
namespace {

constexpr std::size_t kMostRules = 256;
constexpr std::size_t kMostSource = 1024U * 1024;  ///< bytes of all registering chunks
constexpr std::size_t kListedDead = 100;           ///< rules that are done or off and still listed
constexpr int kMostFailures =
    20;  ///< of a chunk that is run again after a restart; it may read what isn't logged yet

/// Whole or not at all, also where the machine stops in between.
Result<void> replace_file(const std::filesystem::path& path, const std::string& text, bool durable) {
  const std::string fresh = path.string() + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const auto failed = [&] {
    return fail(ErrorKind::failed, "can't write " + fresh + ": " + std::strerror(errno));
  };
  if (fd < 0) return failed();
  bool good = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  good = good && (!durable || ::fdatasync(fd) == 0);
  good = ::close(fd) == 0 && good;
  if (!good || ::rename(fresh.c_str(), path.c_str()) != 0) return failed();
  return {};
}

/// Whether a chunk that has run again has registered the same rule. The step of an at() may be another one,
/// as at(run.step + 50, f) has it: the first one counts.
bool same_rule(const Json& a, const Json& b) {
  const bool at = a.value("kind", "") == "at" && b.value("kind", "") == "at";
  return at || a.value("text", "") == b.value("text", "");
}

/// As the process of the rules knows it, at the step that whoever gave it was told.
Json spec_of(const Json& registered, const Json& given) {
  Json spec = registered;
  for (const char* field : {"step", "text"})
    if (given.contains(field)) spec[field] = given[field];
  return spec;
}

}  // namespace

Automation::Outcome Automation::register_chunk(const Client& client, const Json& request) {
  auto outcome = std::make_shared<std::optional<Result<Json>>>();
  Chunk chunk;
  chunk.code = request.value("code", "");
  chunk.name = request.value("name", "chunk");
  chunk.specs = request.value("rules", Json::array());
  std::size_t source = chunk.code.size();
  for (const Chunk& other : chunks_) source += other.code.size();
  std::size_t live = chunk.specs.size();
  for (const auto& [number, rule] : table_.all()) live += rule.on() ? 1 : 0;
  const bool sync = std::any_of(chunk.specs.begin(), chunk.specs.end(),
                                [](const Json& spec) { return spec.value("sync", false); });
  if (client.role < Role::operate || (sync && client.role < Role::admin))
    *outcome =
        fail(ErrorKind::refused, std::string("registering a rule ") + (sync ? "with sync = true " : "") +
                                     "needs the role " + (sync ? "admin" : "operate") +
                                     "; this session has " + std::string(to_string(client.role)));
  else if (live > kMostRules || source > kMostSource)
    *outcome =
        fail(ErrorKind::refused, "the run has " + std::to_string(kMostRules) + " rules, or " +
                                     std::to_string(kMostSource >> 20) +
                                     " MiB of their source, the most there may be; rules[N]:off() ends one");
  if (*outcome) return outcome;
  chunk.id = next_chunk_++;
  chunk.user = client.user;
  chunk.session = client.session;
  chunk.role = client.role;
  chunk.outcome = outcome;
  // A process that is still to be started registers all there are.
  if (rules_actor_.client.lua && rules_actor_.client.lua->has_process())
    rules_actor_.unregistered.push_back(chunk.id);
  else
    rules_actor_.unregistered = {chunk.id};
  chunks_.push_back(std::move(chunk));
  return outcome;
}

void Automation::registered(Actor& actor, const Json& message) {
  const std::int64_t id = *std::exchange(actor.registering, std::nullopt);
  const auto chunk =
      std::find_if(chunks_.begin(), chunks_.end(), [id](const Chunk& one) { return one.id == id; });
  if (chunk == chunks_.end()) return;
  const bool failed = message.value("type", "") == "error";
  const std::string error = failed ? error_from_json(message.value("error", Json())).message : "";
  if (failed && message.value("lost", false) && error.find("was killed") == std::string::npos)
    return;  // by somebody else: the next process registers it
  if (failed) return registration_failed(*chunk, error);
  chunk->failures = 0;
  take_rules(*chunk, message.at("value").at("value").at("rules"));
}

/// The chunk has run in the rules' process: its rules get their numbers, or, after a restart, their
/// functions.
void Automation::take_rules(Chunk& chunk, const Json& specs) {
  if (!chunk.outcome) {
    for (auto& [number, rule] : table_.all()) {
      const auto index = rule.spec.value("index", std::size_t{0});
      if (rule.chunk != chunk.id || !rule.on()) continue;
      if (index >= specs.size() || !same_rule(specs[index], rule.spec))
        switch_off(rule, "its chunk didn't register it when it ran again");
    }
    return;
  }
  // Whoever gave it was interrupted, or left: nobody would know its rules' numbers.
  if (chunk.outcome.use_count() == 1) {
    const std::int64_t id = chunk.id;
    chunks_.remove_if([id](const Chunk& one) { return one.id == id; });
    return;
  }
  const bool same = specs.size() == chunk.specs.size() &&
                    std::equal(specs.begin(), specs.end(), chunk.specs.begin(), same_rule);
  if (!same)
    return registration_failed(chunk, "it registered " + std::to_string(chunk.specs.size()) +
                                          " rules here and " + std::to_string(specs.size()) +
                                          " others when it ran again for the run");
  Json numbers = Json::array();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (chunk.specs[i].value("dropped", false)) {
      numbers.push_back(0);
      continue;
    }
    Rule rule;
    rule.spec = spec_of(specs[i], chunk.specs[i]);
    rule.user = chunk.user;
    rule.role = chunk.role;
    rule.chunk = chunk.id;
    numbers.push_back(table_.add(std::move(rule), ports_.step(), wall_clock_s()).number);
  }
  save(/*durable=*/true);
  *std::exchange(chunk.outcome, nullptr) = Result<Json>(Json{{"numbers", std::move(numbers)}});
  tell_sync();
  fire(table_.at_step(ports_.step(), step_ms_));  // an at() whose step is near
}

void Automation::registration_failed(Chunk& chunk, const std::string& error) {
  if (chunk.outcome) {
    *std::exchange(chunk.outcome, nullptr) = fail(
        ErrorKind::script, "a rule's chunk runs again in the rules' process, and failed there: " + error);
    const std::int64_t id = chunk.id;
    chunks_.remove_if([id](const Chunk& one) { return one.id == id; });
    return;
  }
  ports_.log("rules of chunk " + std::to_string(chunk.id) + " are not back yet: " + error);
  if (++chunk.failures < kMostFailures) return;
  for (auto& [number, rule] : table_.all())
    if (rule.chunk == chunk.id && rule.on()) {
      rule.state = Rule::State::off;
      rule.why = error;
      warn("rule " + std::to_string(number) + ", " + rule.text() +
               ", is off: its chunk failed when it ran again: " + error,
           {{"rule", number}});
    }
  forget_ = true;
}

/// What a chunk reads may not have been there right after a restart.
void Automation::retry_registrations() {
  if (!rules_actor_.client.lua || !rules_actor_.client.lua->has_process() ||
      !rules_actor_.unregistered.empty())
    return;
  for (const Chunk& chunk : chunks_)
    if (chunk.failures > 0 && chunk.failures < kMostFailures) rules_actor_.unregistered.push_back(chunk.id);
}

/// Not while anybody holds a reference to a chunk or a rule.
void Automation::forget_dead_chunks() {
  std::set<std::int64_t> live;
  std::size_t dead = 0;
  for (const auto& [number, rule] : table_.all()) {
    // Where the run goes on from a step before it, an at() that is done has to run again.
    if (rule.job.empty() && (rule.on() || (rule.kind() == "at" && rule.state == Rule::State::done)))
      live.insert(rule.chunk);
    dead += rule.on() ? 0 : 1;
  }
  chunks_.remove_if([&](const Chunk& chunk) { return !chunk.outcome && live.count(chunk.id) == 0; });
  for (auto rule = table_.all().begin(); rule != table_.all().end() && dead > kListedDead;) {
    const bool of_job = !rule->second.job.empty();  // these have no chunk
    const bool gone = !rule->second.on() && (of_job || live.count(rule->second.chunk) == 0);
    rule = gone ? table_.all().erase(rule) : std::next(rule);
    dead -= gone ? 1 : 0;
  }
}

/// A rule whose function the last console had given out: what it has ordered, rank 0 knows; where that is
/// nothing, it is due again.
void Automation::settle(Rule& rule, const Json& reports) {
  const std::string session = "rule " + std::to_string(rule.number);
  const bool ordered = std::any_of(reports.begin(), reports.end(), [&](const Json& report) {
    const std::string state = report.value("state", "");
    if (state == "aborted" || state == "withdrawn") return false;
    if (report.value("order", Json::object()).value("session", "") != session) return false;
    const Json& applied = report.contains("applied") ? report["applied"] : report;
    return applied.value("step", rule.fired_at) >= rule.fired_at;
  });
  if (new_start_ || !ordered) return rule.fire_again();
  rule.fired_at = -1;
  ++rule.runs;
  if (rule.fires_once()) rule.state = Rule::State::done;
}

void Automation::load(const Json& reports) {
  std::ifstream file(directory_ / "rules.json");
  const Json kept = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  new_start_ = true;
  if (!kept.is_object()) return;
  try {
    new_start_ = kept.value("started", "") != started_;
    begun_ = kept.value("begun", "");
    next_chunk_ = kept.value("next_chunk", std::int64_t{1});
    table_.next_number = kept.value("next_rule", std::int64_t{1});
    kept_jobs_ = kept.value("jobs", Json::object());
    for (const Json& item : kept.value("chunks", Json::array())) {
      Chunk chunk;
      chunk.id = item.at("id").get<std::int64_t>();
      chunk.code = item.at("code").get<std::string>();
      chunk.name = item.value("name", "chunk");
      chunk.user = item.value("user", "");
      chunk.session = item.value("session", "");
      chunk.role = role_from_string(item.value("role", "view")).value_or(Role::view);
      chunks_.push_back(std::move(chunk));
    }
    for (const Json& record : kept.value("rules", Json::array())) {
      Rule rule = Rule::from_record(record);
      table_.all()[rule.number] = std::move(rule);
    }
  } catch (const Json::exception& error) {
    ports_.log(std::string("rules.json can't be read, its rules are lost: ") + error.what());
  }
  for (auto& [number, rule] : table_.all())
    if (rule.on() && rule.fired_at >= 0) settle(rule, reports);
  for (const Chunk& chunk : chunks_) rules_actor_.unregistered.push_back(chunk.id);
}

void Automation::save(bool durable) {
  dirty_ = false;
  Json kept = {{"version", 1},
               {"started", started_},
               {"begun", begun_},
               {"next_chunk", next_chunk_},
               {"next_rule", table_.next_number},
               {"jobs", kept_jobs_},
               {"chunks", Json::array()},
               {"rules", Json::array()}};
  for (const Chunk& chunk : chunks_)
    if (!chunk.outcome || std::any_of(table_.all().begin(), table_.all().end(),
                                      [&](const auto& item) { return item.second.chunk == chunk.id; }))
      kept["chunks"].push_back({{"id", chunk.id},
                                {"code", chunk.code},
                                {"name", chunk.name},
                                {"user", chunk.user},
                                {"session", chunk.session},
                                {"role", to_string(chunk.role)}});
  for (const auto& [number, rule] : table_.all())
    if (rule.job.empty()) kept["rules"].push_back(rule.to_record());
  if (auto written = replace_file(directory_ / "rules.json", to_line(kept), durable); !written)
    ports_.log(written.error().message);
}

}  // namespace footplate::host
