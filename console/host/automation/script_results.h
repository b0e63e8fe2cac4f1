#pragma once

#include <vector>

#include "protocol/messages/rules_and_jobs.h"

namespace footplate {

/// What a chunk has registered when it ran in the rules' process: the value of its result.
struct RegisteredRules {
  std::vector<RuleSpec> rules;
};
Result<void> read_json(const Json& json, RegisteredRules& registered);

/// How long a rule's function took: the value of its result.
struct HandlerTime {
  double ran_ms = 0;
};
Result<void> read_json(const Json& json, HandlerTime& time);

}  // namespace footplate
