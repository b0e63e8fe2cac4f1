#pragma once

#include <vector>

#include "protocol/messages/rules_and_jobs.h"

namespace footplate {

/// A rule of a chunk that has run in its session.
struct GivenRule {
  RuleSpec spec;
  bool dropped = false;  ///< the chunk has switched it off again
};
Result<void> read_json(const Json& json, GivenRule& rule);

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
