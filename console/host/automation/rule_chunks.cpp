#include "console/host/automation/rule_chunks.h"

#include <algorithm>
#include <set>
#include <utility>

#include "console/host/automation/script_results.h"

namespace footplate::host {
namespace {

constexpr std::size_t kMostSource = 1024U * 1024;  ///< bytes of all registering chunks
constexpr std::size_t kListedDead = 100;           ///< rules that are done or off and still listed
constexpr int kMostFailures =
    20;  ///< of a chunk that is run again after a restart; it may read what isn't logged yet
constexpr int kMostLosses = 3;  ///< of the process, while it runs a new chunk

/// Whether a chunk that has run again has registered the same rule. The step of an at() may be another one,
/// as at(run.step + 50, f) has it: the first one counts.
bool same_rule(const RuleSpec& a, const RuleSpec& b) {
  return (a.kind == RuleKind::at && b.kind == RuleKind::at) || a.text == b.text;
}

/// As the process of the rules knows it, at the step that whoever gave it was told.
RuleSpec spec_of(const RuleSpec& registered, const RuleSpec& given) {
  RuleSpec spec = registered;
  if (given.step) spec.step = given.step;
  spec.text = given.text;
  return spec;
}

}  // namespace

RuleChunks::Outcome RuleChunks::add(const Client& client, Registration registration, bool process_runs) {
  auto outcome = std::make_shared<Outcome::element_type>();
  std::size_t source = registration.code.size();
  for (const Chunk& other : chunks_) source += other.kept.code.size();
  const bool sync = std::ranges::any_of(registration.rules, [](const RuleSpec& spec) { return spec.sync; });
  if (client.role < Role::operate || (sync && client.role < Role::admin))
    *outcome =
        fail(ErrorKind::refused, std::string("registering a rule ") + (sync ? "with sync = true " : "") +
                                     "needs the role " + (sync ? "admin" : "operate") +
                                     "; this session has " + std::string(to_string(client.role)));
  else if (run_.table.has_no_room_for(registration.rules.size()) || source > kMostSource)
    *outcome =
        fail(ErrorKind::refused, "the run has " + std::to_string(RuleTable::kMostRules) + " rules, or " +
                                     std::to_string(kMostSource >> 20) +
                                     " MiB of their source, the most there may be; rules[N]:off() ends one");
  if (*outcome) return outcome;
  Chunk chunk;
  chunk.kept.id = next_number++;
  chunk.kept.code = std::move(registration.code);
  chunk.kept.name = std::move(registration.name);
  chunk.kept.user = client.user;
  chunk.kept.session = client.session;
  chunk.kept.role = client.role;
  chunk.rules = std::move(registration.rules);
  chunk.outcome = outcome;
  // A process that is still to be started registers all there are.
  if (process_runs)
    next_.push_back(chunk.kept.id);
  else
    next_ = {chunk.kept.id};
  chunks_.push_back(std::move(chunk));
  return outcome;
}

std::list<RuleChunks::Chunk>::iterator RuleChunks::find(std::int64_t id) {
  return std::find_if(chunks_.begin(), chunks_.end(), [id](const Chunk& one) { return one.kept.id == id; });
}

void RuleChunks::process_started() {
  next_.clear();
  for (const Chunk& chunk : chunks_) next_.push_back(chunk.kept.id);
}

Role RuleChunks::role() const {
  for (const Chunk& chunk : chunks_)
    if (running_ == chunk.kept.id) return chunk.kept.role;
  return Role::admin;
}

bool RuleChunks::send_next(LuaSession& lua) {
  while (!next_.empty()) {
    const auto chunk = find(next_.front());
    next_.pop_front();
    if (chunk == chunks_.end()) continue;
    running_ = chunk->kept.id;
    lua.eval(RegisterChunk{ScriptProcess::kChunkId, chunk->kept.id, chunk->kept.code, chunk->kept.name},
             run_.now, run_.limits.chunk_s);
    return true;
  }
  return false;
}

void RuleChunks::ended(const ChunkEnd& end) {
  const std::int64_t id = *std::exchange(running_, std::nullopt);
  const auto chunk = find(id);
  if (chunk == chunks_.end()) return;
  if (!end && !end.error().own_fault) return lost(*chunk, end.error().error.message);
  if (!end) return failed(*chunk, end.error().error.message);
  RegisteredRules registered;
  if (const auto read = read_json(end->value, registered); !read)
    return failed(*chunk, "what it registered can't be read: " + read.error().message);
  chunk->failures = 0;
  take_rules(*chunk, registered.rules);
}

/// Its process is, by somebody else. The next one registers every chunk; somebody waits for a new one, and
/// that has it started.
void RuleChunks::lost(Chunk& chunk, const std::string& error) {
  if (!chunk.outcome) return;
  if (++chunk.losses == kMostLosses) return failed(chunk, error);
  next_.push_front(chunk.kept.id);
}

void RuleChunks::take_again(const Chunk& chunk, const std::vector<RuleSpec>& specs) {
  for (auto& [number, rule] : run_.table.all()) {
    if (rule.chunk != chunk.kept.id || !rule.on()) continue;
    rule.has_function = true;
    const auto index = static_cast<std::size_t>(rule.spec.index);
    if (index >= specs.size() || !same_rule(specs[index], rule.spec))
      rules_.switch_off(rule, "its chunk didn't register it when it ran again");
  }
}

/// The chunk has run in the rules' process: its rules get their numbers, or, after a restart, their
/// functions.
void RuleChunks::take_rules(Chunk& chunk, const std::vector<RuleSpec>& specs) {
  if (!chunk.outcome) return take_again(chunk, specs);
  // Whoever gave it was interrupted, or left: nobody would know its rules' numbers.
  if (chunk.outcome.use_count() == 1) {
    chunks_.erase(find(chunk.kept.id));
    return;
  }
  const bool same = std::ranges::equal(specs, chunk.rules, same_rule);
  if (!same)
    return failed(chunk, "it registered " + std::to_string(chunk.rules.size()) + " rules here and " +
                             std::to_string(specs.size()) + " others when it ran again for the run");
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (chunk.rules[i].dropped) {
      numbers.push_back(0);
      continue;
    }
    Rule rule;
    rule.spec = spec_of(specs[i], chunk.rules[i]);
    rule.user = chunk.kept.user;
    rule.role = chunk.kept.role;
    rule.chunk = chunk.kept.id;
    numbers.push_back(run_.table.add(std::move(rule), run_.ports.step(), wall_clock_s()).number);
  }
  save_();
  *std::exchange(chunk.outcome, nullptr) = std::move(numbers);
  rules_.tell_sync();
  rules_.fire(run_.table.at_step(run_.ports.step(), run_.step_ms));  // an at() whose step is near
}

void RuleChunks::failed(Chunk& chunk, const std::string& error) {
  if (chunk.outcome) {
    *std::exchange(chunk.outcome, nullptr) = fail(
        ErrorKind::script, "a rule's chunk runs again in the rules' process, and failed there: " + error);
    chunks_.erase(find(chunk.kept.id));
    return;
  }
  run_.ports.log("rules of chunk " + std::to_string(chunk.kept.id) + " are not back yet: " + error);
  for (auto& [number, rule] : run_.table.all())
    if (rule.chunk == chunk.kept.id) rule.has_function = false;
  if (++chunk.failures < kMostFailures) return;
  for (auto& [number, rule] : run_.table.all())
    if (rule.chunk == chunk.kept.id && rule.on()) {
      rule.state = RuleState::off;
      rule.why = error;
      run_.warn_of(rule, "rule " + std::to_string(number) + ", " + rule.spec.text +
                             ", is off: its chunk failed when it ran again: " + error);
    }
  run_.forget = true;
}

void RuleChunks::retry() {
  if (!next_.empty()) return;
  for (const Chunk& chunk : chunks_)
    if (chunk.failures > 0 && chunk.failures < kMostFailures) next_.push_back(chunk.kept.id);
}

void RuleChunks::forget_dead() {
  std::set<std::int64_t> live;
  std::size_t dead = 0;
  for (const auto& [number, rule] : run_.table.all()) {
    // Where the run goes on from a step before it, an at() that is done has to run again.
    if (rule.job.empty() && (rule.on() || (rule.spec.kind == RuleKind::at && rule.state == RuleState::done)))
      live.insert(rule.chunk);
    dead += rule.on() ? 0 : 1;
  }
  chunks_.remove_if([&](const Chunk& chunk) { return !chunk.outcome && live.count(chunk.kept.id) == 0; });
  for (auto rule = run_.table.all().begin(); rule != run_.table.all().end() && dead > kListedDead;) {
    const bool of_job = !rule->second.job.empty();  // these have no chunk
    const bool gone = !rule->second.on() && (of_job || live.count(rule->second.chunk) == 0);
    rule = gone ? run_.table.all().erase(rule) : std::next(rule);
    dead -= gone ? 1 : 0;
  }
}

std::vector<KeptChunk> RuleChunks::records() const {
  std::vector<KeptChunk> records;
  for (const Chunk& chunk : chunks_)
    if (!chunk.outcome || std::ranges::any_of(run_.table.all(), [&](const auto& item) {
          return item.second.chunk == chunk.kept.id;
        }))
      records.push_back(chunk.kept);
  return records;
}

void RuleChunks::load(const std::vector<KeptChunk>& records) {
  for (const KeptChunk& record : records) chunks_.emplace_back().kept = record;
  process_started();
}

}  // namespace footplate::host
