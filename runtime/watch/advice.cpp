#include "runtime/watch/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "protocol/own_session.h"

namespace footplate {
namespace {

constexpr auto kPieces = "comm.chunk_elements";
constexpr std::array kKnobs{"comm.timeout_s",        "comm.eval_timeout_s",  "comm.small_timeout_s",
                            "comm.medium_timeout_s", "comm.large_timeout_s", kPieces};

/// Evidence is of this time, or of ten deadlines where that is longer: late operations that are as rare as
/// that are exceptions.
constexpr std::chrono::hours kWindow{1};
constexpr double kWindowOfDeadlines = 10;
/// Kept for each deadline.
constexpr std::size_t kMostLate = 64;
/// Between two own orders about the same setting: what the first one did has to show.
constexpr std::chrono::minutes kCoolDown{10};
/// Own orders go up to so many times, or down to such a part of, what somebody else has set last. Beyond
/// that a deadline would no longer be what somebody wanted to hear about.
constexpr double kReach = 10;

bool is_deadline(const std::string& name) {
  return name != kPieces;
}

/// The number in "order 12 (footplate)"; 0: it is no own order.
std::uint64_t own_order_in(const std::string& source) {
  constexpr std::string_view kOrder = "order ";
  if (!source.starts_with(kOrder) || !source.ends_with(fmt::format(" ({})", kOwnSession))) return 0;
  std::uint64_t id = 0;
  std::from_chars(source.data() + kOrder.size(), source.data() + source.size(), id);
  return id;
}

Value value_of(const std::string& name, double value) {
  if (is_deadline(name)) return value;
  return static_cast<std::int64_t>(value);
}

double as_number(const Value& value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value);
}

std::string command(const std::string& name, const Value& value) {
  return name + " = " + to_text(value);
}

Warning advice_on(const std::string& name, const Value& value, const std::vector<int>& last) {
  Warning warning;
  warning.kind = WarningKind::advice;
  warning.ranks = last;
  warning.setting = name;
  warning.value = to_json(value);
  warning.command = command(name, value);
  return warning;
}

}  // namespace

// --- what comes in ---

void Advice::follow(const SettingsUpdate& changed) {
  const auto& settings = changed.settings;
  if (const auto mode = settings.find("comm.auto"); mode != settings.end() && mode->second.value.is_string())
    follow_mode(from_word<AdviceMode>(mode->second.value.get<std::string>()).value_or(AdviceMode::off));
  if (settings.contains("comm.bucket_mb")) forget_all();  // other sizes from here on
  for (const char* name : kKnobs)
    if (const auto one = settings.find(name); one != settings.end() && one->second.value.is_number())
      set(name, one->second.value.get<double>(), one->second.source);
}

/// Whoever sets it, to whatever, wants it from here on.
void Advice::follow_mode(AdviceMode mode) {
  mode_ = mode;
  for (auto& [name, knob] : knobs_) knob.hands_off = false;
  if (mode_ == AdviceMode::off) forget_all();
  news_ = true;
}

void Advice::world_changed(int world_size) {
  late_ = LateCollectives(world_size);
  different_ = false;
  forget_all();
}

void Advice::forget_all() {
  for (auto& [name, knob] : knobs_) {
    knob.late.clear();
    knob.proposal.reset();
  }
}

bool Advice::is_own(const std::string& source) const {
  const std::uint64_t id = own_order_in(source);  // a person may be called so, too
  return id != 0 && (id < parts_.first_order_id || own_orders_.count(id) > 0);
}

void Advice::set(const std::string& name, double value, const std::string& source) {
  if (!is_deadline(name)) forget_all();  // what operations took says nothing of other pieces
  Knob& knob = knobs_[name];
  const bool own = is_own(source);
  if (!own) {
    const bool back = is_deadline(name) ? value < knob.now : value == 0 || value > knob.now;
    if (knob.own && back) knob.hands_off = true;
    knob.given = value;
  } else if (!knob.given) {
    // An earlier start went there, from where isn't known: this one goes no farther.
    knob.given = is_deadline(name) ? value / kReach : value * kReach;
  }
  knob.own = own;
  knob.now = value;
  knob.late.clear();
  knob.proposal.reset();
}

void Advice::handle(int source, const message::Overdue& overdue, Clock::time_point now) {
  auto late = late_.handle(source, overdue, now);
  news_ = news_ || late_.none();
  if (late && mode_ != AdviceMode::off) remember(*std::move(late), now);
}

/// Of the operations of one size at one step the longest is kept: a bad moment counts once.
void Advice::remember(LateCollective late, Clock::time_point now) {
  const auto found = knobs_.find(late.setting);
  if (found == knobs_.end() || !is_deadline(found->first)) return;
  Knob& knob = found->second;
  // Another deadline has come into force meanwhile; or its end was overwritten in the ledger.
  if (std::abs(late.limit_s - knob.now) > 1e-6 * knob.now || late.longest_s <= late.limit_s) return;
  const auto window =
      std::max<Clock::duration>(kWindow, std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(kWindowOfDeadlines * knob.now)));
  while (!knob.late.empty() && knob.late.front().ended < now - window) knob.late.pop_front();
  const auto same = [&](const LateCollective& other) {
    return other.step == late.step && other.kind == late.kind &&
           size_class(other.elements) == size_class(late.elements);
  };
  const auto known = std::find_if(knob.late.begin(), knob.late.end(), same);
  if (known == knob.late.end()) {
    knob.late.push_back(std::move(late));
    if (knob.late.size() > kMostLate) knob.late.pop_front();
  } else if (late.longest_s > known->longest_s) {
    *known = std::move(late);
  }
}

void Advice::found(CollectiveVerdict verdict, std::uint64_t sequence, const std::vector<int>& ranks) {
  if (verdict == CollectiveVerdict::different) {
    different_ = true;
    forget_all();
  } else {
    late_.found(sequence, ranks);
  }
}

// --- what comes of it ---

void Advice::tick(Clock::time_point now) {
  if (!news_ || mode_ == AdviceMode::off || different_ || !late_.none() || parts_.status.anyone_silent())
    return;
  news_ = false;
  act(kPieces, knobs_[kPieces], now);  // first: where that is the reason, a deadline isn't
  for (auto& [name, knob] : knobs_)
    if (is_deadline(name)) act(name, knob, now);
}

std::optional<Conclusion> Advice::conclude(const std::string& name, const Knob& knob) const {
  if (is_deadline(name)) {
    const SettingSpec* spec = parts_.schema.setting(name);
    std::vector<LateCollective> late(knob.late.begin(), knob.late.end());
    if (const auto& pieces = knobs_.at(kPieces).proposal)
      std::erase_if(late, [&](const LateCollective& one) {
        return one.by_itself && static_cast<double>(one.elements) > as_number(pieces->conclusion.value);
      });
    return spec == nullptr ? std::nullopt : longer_deadline(name, knob.now, spec->range.max, late);
  }
  if (parts_.ledger == nullptr) return std::nullopt;
  std::vector<LateCollective> late;
  for (const auto& [deadline, other] : knobs_) late.insert(late.end(), other.late.begin(), other.late.end());
  return smaller_pieces(static_cast<std::int64_t>(knob.now), late, parts_.ledger->patterns());
}

/// What has been said stands until the setting changes, or until it wouldn't be enough any more.
void Advice::act(const std::string& name, Knob& knob, Clock::time_point now) {
  const auto& said = knob.proposal;
  if (auto conclusion = conclude(name, knob);
      conclusion &&
      (!said || (is_deadline(name) && conclusion->longest_s > as_number(said->conclusion.value))))
    knob.proposal = Proposal{*std::move(conclusion), false};
  if (!knob.proposal) return;
  const auto value = within_reach(name, knob);
  if (mode_ != AdviceMode::apply || knob.hands_off || !value) {
    if (!knob.proposal->told) advise(name, knob);
  } else if (now < knob.not_before) {
    news_ = true;  // then
  } else {
    order(name, knob, *value, now);
  }
}

/// What footplate may set by itself: the proposal, or as much of it as is enough. Nothing: it would go too
/// far.
std::optional<Value> Advice::within_reach(const std::string& name, const Knob& knob) const {
  const Conclusion& conclusion = knob.proposal->conclusion;
  const double wanted = as_number(conclusion.value);
  const double given = knob.given.value_or(knob.now);
  if (!is_deadline(name))
    return wanted >= given / kReach && wanted >= static_cast<double>(kLeastPiece)
               ? std::optional(conclusion.value)
               : std::nullopt;
  const double most = kReach * given;
  if (wanted <= most) return conclusion.value;
  return most > knob.now && most > conclusion.longest_s ? std::optional<Value>(most) : std::nullopt;
}

void Advice::order(const std::string& name, Knob& knob, const Value& value, Clock::time_point now) {
  const Conclusion& conclusion = knob.proposal->conclusion;
  const Value before = value_of(name, knob.now);
  Order order;
  order.source = "-- " + conclusion.why;
  order.changes = {{name, value, before}};
  const std::uint64_t id = parts_.order(std::move(order));
  if (id == 0) {
    news_ = true;  // tried again
    return;
  }
  own_orders_.insert(id);
  knob.not_before = now + kCoolDown;
  knob.proposal->told = true;
  Warning warning = advice_on(name, value, conclusion.last);
  warning.order = id;
  warning.text = fmt::format("{}. Order {} sets {} (comm.auto is \"apply\"); to take that back: {}",
                             conclusion.why, id, warning.command, command(name, before));
  parts_.warn(std::move(warning));
}

void Advice::advise(const std::string& name, Knob& knob) {
  const Conclusion& conclusion = knob.proposal->conclusion;
  knob.proposal->told = true;
  Warning warning = advice_on(name, conclusion.value, conclusion.last);
  warning.text = advice_text(name, knob);
  parts_.warn(std::move(warning));
}

std::string Advice::advice_text(const std::string& name, const Knob& knob) const {
  const Conclusion& conclusion = knob.proposal->conclusion;
  std::string text =
      fmt::format("{}. {}: {}", conclusion.why,
                  is_deadline(name) ? "If that is normal here" : "Smaller pieces would be faster",
                  command(name, conclusion.value));
  if (mode_ != AdviceMode::apply) return text;
  if (knob.hands_off) return text + " (comm.auto leaves it to you: it was put back by hand)";
  if (!within_reach(name, knob)) text += " (comm.auto leaves it to you: too far from what was set)";
  return text;
}

std::vector<SettingProposal> Advice::proposals() const {
  std::vector<SettingProposal> list;
  for (const auto& [name, knob] : knobs_) {
    if (!knob.proposal) continue;
    const Value& value = knob.proposal->conclusion.value;
    list.push_back({name, to_json(value), command(name, value), advice_text(name, knob)});
  }
  return list;
}

}  // namespace footplate
