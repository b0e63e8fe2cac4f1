#include "console/host/run/waits.h"

#include <algorithm>

namespace footplate::host {

void Waits::add(Wait wait, Clock::time_point now) {
  waits_.push_back(std::move(wait));
  look(now);
}

void Waits::look(Clock::time_point now) {
  // An answer may add a wait (a script that goes on), so finished ones leave the list first.
  std::vector<Telling> tellings;
  for (auto wait = waits_.begin(); wait != waits_.end();) {
    auto telling = wait->ready();
    if (!telling && wait->deadline && now >= *wait->deadline) telling = wait->late();
    const auto current = wait++;
    if (!telling) continue;
    tellings.push_back(*std::move(telling));
    waits_.erase(current);
  }
  for (const Telling& tell : tellings) tell();
}

void Waits::note(std::uint64_t order_id, const std::string& order_ref, const OrderReport& report) {
  for (Wait& wait : waits_)
    if (wait.note && (wait.order_id != 0 ? wait.order_id == order_id : wait.order_ref == order_ref))
      wait.note(report);
}

void Waits::note_all(const OrderReport& report) {
  for (Wait& wait : waits_)
    if (wait.note) wait.note(report);
}

void Waits::forget(std::uint64_t owner) {
  waits_.remove_if([owner](const Wait& wait) { return wait.owner == owner; });
}

void Waits::forget_script(std::uint64_t owner) {
  waits_.remove_if([owner](const Wait& wait) { return wait.owner == owner && wait.of_script; });
}

void Waits::fail_all(const Error& error) {
  for (Wait& wait : std::exchange(waits_, {})) wait.failed(error);
}

std::ptrdiff_t Waits::for_steps() const {
  return std::count_if(waits_.begin(), waits_.end(), [](const Wait& wait) { return wait.for_step; });
}

std::optional<Waits::Clock::time_point> Waits::next_deadline() const {
  std::optional<Clock::time_point> next;
  for (const Wait& wait : waits_)
    if (wait.deadline && (!next || *wait.deadline < *next)) next = wait.deadline;
  return next;
}

}  // namespace footplate::host
