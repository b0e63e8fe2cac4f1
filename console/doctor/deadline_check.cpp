#include "console/doctor/deadline_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "console/client/render/render.h"
#include "protocol/deadline_names.h"

namespace footplate {
namespace {

/// A deadline tells what isn't normal from what is: it had better be so many times as long.
constexpr double kRoom = 2;

constexpr std::array kShown{"comm.small_timeout_s", "comm.medium_timeout_s", "comm.large_timeout_s",
                            "comm.timeout_s",       "comm.eval_timeout_s",   "comm.on_timeout",
                            "comm.hard_limit_s",    "comm.bucket_mb",        "comm.chunk_elements",
                            "nccl.preset"};

/// Of a collective of a training step.
struct Deadline {
  const char* setting;
  double seconds;
};
Deadline deadline_of(const Settings& settings, std::int64_t elements) {
  const char* by_size = deadline_by_size(elements);
  const Deadline of_size{by_size, settings.number(by_size)};
  const Deadline of_phase{"comm.timeout_s", settings.number("comm.timeout_s")};
  return elements < kSmallCollective || of_size.seconds > of_phase.seconds ? of_size : of_phase;
}

std::int64_t bucket_of(const Settings& settings) {
  return static_cast<std::int64_t>(settings.number("comm.bucket_mb") * (1 << 20) / sizeof(float));
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? rounded(seconds * 1000, 3) + " ms" : rounded(seconds, 3) + " s";
}

}  // namespace

Check check_settings(const Schema& schema, const Settings& settings) {
  Check check{.name = "settings"};
  for (const char* name : kShown) {
    const SettingSpec* spec = schema.setting(name);
    if (spec == nullptr) continue;
    const std::string& source = settings.source(name);
    check.values[name] = {{"value", to_json(settings.value(name))}, {"source", source}};
    check.found += (check.found.empty() ? "" : ", ") + std::string(name) + " = " +
                   display(settings.value(name), spec->unit) +
                   (source == "default" ? "" : " (" + source + ")");
  }
  return check;
}

std::optional<std::int64_t> gradients_of(const Settings& settings) {
  if (settings.string("run.task") != "text") return std::nullopt;
  const std::int64_t width = settings.integer("model.width");
  const std::int64_t in_a_block = 12 * width * width + 13 * width;  // matrices; biases and norms
  return settings.integer("model.layers") * in_a_block +
         (settings.integer("model.vocabulary") + settings.integer("model.context") + 2) * width;
}

Check check_deadlines(const Settings& settings, double gb_per_s, std::int64_t elements) {
  Check check{.name = "deadlines"};
  const auto gradients = gradients_of(settings);
  const std::int64_t whole = gradients.value_or(elements);
  const auto takes_s = [&](std::int64_t count) {
    return static_cast<double>(count) * sizeof(float) / 1e9 / gb_per_s;
  };
  check.values = {{"gb_per_s", gb_per_s}, {"elements", whole}, {"of_model", gradients.has_value()}};
  check.found = "at " + rounded(gb_per_s, 3) + " GB/s ";
  std::vector<std::pair<std::string, std::int64_t>> reductions{
      {gradients ? "the model's gradients, " : "", whole}};
  if (const std::int64_t bucket = bucket_of(settings); bucket < whole)
    reductions.emplace_back("; a bucket of them, ", bucket);
  Deadline short_one{nullptr, 0};
  for (const auto& [what, count] : reductions) {
    const Deadline deadline = deadline_of(settings, count);
    check.found += what + elements_text(count) + ", take " + seconds_text(takes_s(count)) + " and have " +
                   seconds_text(deadline.seconds) + " (" + deadline.setting + ")";
    check.values[deadline.setting] = deadline.seconds;
    if (kRoom * takes_s(count) > deadline.seconds && short_one.setting == nullptr)
      short_one = {deadline.setting, std::ceil(2 * kRoom * takes_s(count))};
  }
  if (short_one.setting == nullptr) return check;
  return to_mend(std::move(check), std::string(short_one.setting) + " = " + rounded(short_one.seconds, 6) +
                                       ", or a faster network (the reductions above)");
}

}  // namespace footplate
