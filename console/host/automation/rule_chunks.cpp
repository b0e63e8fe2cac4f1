#include "console/host/automation/rule_chunks.h"

#include <algorithm>
#include <set>
#include <utility>

namespace footplate::host {
namespace {

constexpr std::size_t kMostRules = 256;
constexpr std::size_t kMostSource = 1024U * 1024;  ///< bytes of all registering chunks
constexpr std::size_t kListedDead = 100;           ///< rules that are done or off and still listed
constexpr int kMostFailures =
    20;  ///< of a chunk that is run again after a restart; it may read what isn't logged yet

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

RuleChunks::Outcome RuleChunks::add(const Client& client, const Json& request, bool process_runs) {
  auto outcome = std::make_shared<std::optional<Result<Json>>>();
  Chunk chunk;
  chunk.code = request.value("code", "");
  chunk.name = request.value("name", "chunk");
  chunk.specs = request.value("rules", Json::array());
  std::size_t source = chunk.code.size();
  for (const Chunk& other : chunks_) source += other.code.size();
  std::size_t live = chunk.specs.size();
  for (const auto& [number, rule] : run_.table.all()) live += rule.on() ? 1 : 0;
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
  chunk.id = next_number++;
  chunk.user = client.user;
  chunk.session = client.session;
  chunk.role = client.role;
  chunk.outcome = outcome;
  // A process that is still to be started registers all there are.
  if (process_runs)
    next_.push_back(chunk.id);
  else
    next_ = {chunk.id};
  chunks_.push_back(std::move(chunk));
  return outcome;
}

std::list<RuleChunks::Chunk>::iterator RuleChunks::find(std::int64_t id) {
  return std::find_if(chunks_.begin(), chunks_.end(), [id](const Chunk& one) { return one.id == id; });
}

void RuleChunks::process_started() {
  next_.clear();
  for (const Chunk& chunk : chunks_) next_.push_back(chunk.id);
}

Role RuleChunks::role() const {
  for (const Chunk& chunk : chunks_)
    if (running_ == chunk.id) return chunk.role;
  return Role::admin;
}

bool RuleChunks::send_next(LuaSession& lua) {
  while (!next_.empty()) {
    const auto chunk = find(next_.front());
    next_.pop_front();
    if (chunk == chunks_.end()) continue;
    running_ = chunk->id;
    lua.eval({{"type", "register"},
              {"id", "r"},
              {"chunk", chunk->id},
              {"code", chunk->code},
              {"name", chunk->name}},
             run_.now, run_.limits.chunk_s);
    return true;
  }
  return false;
}

void RuleChunks::ended(const Json& message) {
  const std::int64_t id = *std::exchange(running_, std::nullopt);
  const auto chunk = find(id);
  if (chunk == chunks_.end()) return;
  const bool failed = message.value("type", "") == "error";
  const std::string error = failed ? error_from_json(message.value("error", Json())).message : "";
  if (failed && message.value("lost", false) && error.find("was killed") == std::string::npos)
    return;  // by somebody else: the next process registers it
  if (failed) return this->failed(*chunk, error);
  chunk->failures = 0;
  take_rules(*chunk, message.at("value").at("value").at("rules"));
}

void RuleChunks::take_again(const Chunk& chunk, const Json& specs) {
  for (auto& [number, rule] : run_.table.all()) {
    const auto index = rule.spec.value("index", std::size_t{0});
    if (rule.chunk != chunk.id || !rule.on()) continue;
    if (index >= specs.size() || !same_rule(specs[index], rule.spec))
      rules_.switch_off(rule, "its chunk didn't register it when it ran again");
  }
}

/// The chunk has run in the rules' process: its rules get their numbers, or, after a restart, their
/// functions.
void RuleChunks::take_rules(Chunk& chunk, const Json& specs) {
  if (!chunk.outcome) return take_again(chunk, specs);
  // Whoever gave it was interrupted, or left: nobody would know its rules' numbers.
  if (chunk.outcome.use_count() == 1) {
    chunks_.erase(find(chunk.id));
    return;
  }
  const bool same = specs.size() == chunk.specs.size() &&
                    std::equal(specs.begin(), specs.end(), chunk.specs.begin(), same_rule);
  if (!same)
    return failed(chunk, "it registered " + std::to_string(chunk.specs.size()) + " rules here and " +
                             std::to_string(specs.size()) + " others when it ran again for the run");
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
    numbers.push_back(run_.table.add(std::move(rule), run_.ports.step(), wall_clock_s()).number);
  }
  save_();
  *std::exchange(chunk.outcome, nullptr) = Result<Json>(Json{{"numbers", std::move(numbers)}});
  rules_.tell_sync();
  rules_.fire(run_.table.at_step(run_.ports.step(), run_.step_ms));  // an at() whose step is near
}

void RuleChunks::failed(Chunk& chunk, const std::string& error) {
  if (chunk.outcome) {
    *std::exchange(chunk.outcome, nullptr) = fail(
        ErrorKind::script, "a rule's chunk runs again in the rules' process, and failed there: " + error);
    chunks_.erase(find(chunk.id));
    return;
  }
  run_.ports.log("rules of chunk " + std::to_string(chunk.id) + " are not back yet: " + error);
  if (++chunk.failures < kMostFailures) return;
  for (auto& [number, rule] : run_.table.all())
    if (rule.chunk == chunk.id && rule.on()) {
      rule.state = Rule::State::off;
      rule.why = error;
      run_.warn("rule " + std::to_string(number) + ", " + rule.text() +
                    ", is off: its chunk failed when it ran again: " + error,
                {{"rule", number}});
    }
  run_.forget = true;
}

void RuleChunks::retry() {
  if (!next_.empty()) return;
  for (const Chunk& chunk : chunks_)
    if (chunk.failures > 0 && chunk.failures < kMostFailures) next_.push_back(chunk.id);
}

void RuleChunks::forget_dead() {
  std::set<std::int64_t> live;
  std::size_t dead = 0;
  for (const auto& [number, rule] : run_.table.all()) {
    // Where the run goes on from a step before it, an at() that is done has to run again.
    if (rule.job.empty() && (rule.on() || (rule.kind() == "at" && rule.state == Rule::State::done)))
      live.insert(rule.chunk);
    dead += rule.on() ? 0 : 1;
  }
  chunks_.remove_if([&](const Chunk& chunk) { return !chunk.outcome && live.count(chunk.id) == 0; });
  for (auto rule = run_.table.all().begin(); rule != run_.table.all().end() && dead > kListedDead;) {
    const bool of_job = !rule->second.job.empty();  // these have no chunk
    const bool gone = !rule->second.on() && (of_job || live.count(rule->second.chunk) == 0);
    rule = gone ? run_.table.all().erase(rule) : std::next(rule);
    dead -= gone ? 1 : 0;
  }
}

Json RuleChunks::records() const {
  Json records = Json::array();
  for (const Chunk& chunk : chunks_)
    if (!chunk.outcome || std::any_of(run_.table.all().begin(), run_.table.all().end(),
                                      [&](const auto& item) { return item.second.chunk == chunk.id; }))
      records.push_back({{"id", chunk.id},
                         {"code", chunk.code},
                         {"name", chunk.name},
                         {"user", chunk.user},
                         {"session", chunk.session},
                         {"role", to_string(chunk.role)}});
  return records;
}

void RuleChunks::load(const Json& records) {
  for (const Json& item : records) {
    Chunk chunk;
    chunk.id = item.at("id").get<std::int64_t>();
    chunk.code = item.at("code").get<std::string>();
    chunk.name = item.value("name", "chunk");
    chunk.user = item.value("user", "");
    chunk.session = item.value("session", "");
    chunk.role = role_from_string(item.value("role", "view")).value_or(Role::view);
    chunks_.push_back(std::move(chunk));
  }
  process_started();
}

}  // namespace footplate::host
