#pragma once

#include <cstdint>
#include <optional>

#include "console/doctor/finding.h"
#include "protocol/schema.h"
#include "protocol/settings.h"

namespace footplate {

/// The settings of collectives in force, with where those come from that somebody has set.
Check check_settings(const Schema& schema, const Settings& settings);

/// What the model of these settings has to reduce in a step, in float32; nothing: only its task knows.
std::optional<std::int64_t> gradients_of(const Settings& settings);

/// Whether the deadlines in force leave time for what an all-reduce takes at `gb_per_s`, as it was measured:
/// one of the model's gradients, or of `elements` where that isn't known; and one of a bucket, as a step has
/// them.
Check check_deadlines(const Settings& settings, double gb_per_s, std::int64_t elements);

}  // namespace footplate
