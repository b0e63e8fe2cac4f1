#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/json.h"
#include "protocol/messages/enum_words.h"
#include "protocol/value.h"

namespace footplate {

/// Who may do something. Each role includes the ones before it.
enum class Role { view, operate, admin };
template <>
struct EnumWords<Role> {
  static constexpr std::array kAll{std::pair{Role::view, std::string_view("view")},
                                   std::pair{Role::operate, std::string_view("operate")},
                                   std::pair{Role::admin, std::string_view("admin")}};
};

/// When an assignment takes effect.
enum class Applies {
  fixed,    ///< for the life of the run; only a config or the command line sets it
  step,     ///< at the agreed step
  comm,     ///< with new communicators at the agreed step
  state,    ///< at the agreed step, for which the ranks divide their state
  restart,  ///< at the next start; kept until then
};

std::string_view to_string(Role role);
std::string_view to_string(Applies applies);
Result<Role> role_from_string(std::string_view text);

/// Closed interval of what a number may be; `exclusive_min` opens its lower end.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool exclusive_min = false;

  bool contains(double value) const { return (exclusive_min ? value > min : value >= min) && value <= max; }
  bool bounded() const {
    return min != -std::numeric_limits<double>::infinity() || max != std::numeric_limits<double>::infinity();
  }
};

/// SettingSpec::syntax of a list of numbers that are points of a schedule: step, rate, step, rate, …
inline constexpr const char* kSchedulePoints = "points";

/// One setting: everything that help, completion, validation and the reference page are made from.
struct SettingSpec {
  std::string name;  ///< dotted, lower case: "log.every"
  Type type = Type::number;
  std::string unit;  ///< "steps", "sequences", "s", "bytes", …; empty for none
  Range range;       ///< of a string: of its length, in characters
  Range usual;       ///< what needs no question; unbounded if all of `range` is usual
  std::vector<std::string> choices;
  Value default_value;
  std::string help;
  std::string example;               ///< a Lua line that runs
  std::vector<std::string> aliases;  ///< names people will type
  Role role = Role::admin;
  Applies applies = Applies::step;
  /// Not empty: the value is computed (optim.lr); read-only, and these are the settings that move it.
  std::vector<std::string> knobs;
  /// Of a computed value: the metric that has it in each logged line ("train/lr").
  std::string metric;
  /// Not empty: the environment variable by which a library reads it ("NCCL_BUFFSIZE"), set for the ranks at
  /// their start (protocol/nccl/variables.h). The default leaves the variable, and so the choice, to the
  /// library.
  std::string variable;
  /// Of a choice: what each value is in the variable, {"off", "1"}.
  std::vector<std::pair<std::string, std::string>> variable_values;
  /// Of a string that is more than text, or a list that is more than numbers: how it is read (kTuningRules,
  /// kSchedulePoints); checked with the value.
  std::string syntax;
};

/// A name of somebody else's that people will type, and that no setting stands for.
struct Hint {
  std::string name;      ///< "NCCL_TIMEOUT"; with '*' at its end or in it for any text: "TORCH_NCCL_*"
  std::string text;      ///< what to do instead, as the rest of a sentence that begins with the name
  bool foreign = false;  ///< nobody here reads it, so that it does nothing in the environment either

  bool matches(std::string_view other) const;
};

/// A parameter of an action.
struct ParamSpec {
  std::string name;
  Type type = Type::string;
  std::string unit;
  Range range;
  std::vector<std::string> choices;
  std::optional<Value> default_value;  ///< none: the parameter may be left out and has no value
  std::string help;
};

/// One action: eval.now, ckpt.save, run.pause, …
struct ActionSpec {
  std::string name;
  std::vector<ParamSpec> params;
  Role role = Role::operate;
  bool dangerous = false;  ///< asks once on a terminal; scripts say {force=true}
  std::string help;
  std::string example;
  std::string result;  ///< what :wait() returns, in words
};

/// A rule between two settings, checked on the final state of an order.
struct Constraint {
  enum class Kind {
    divides,            ///< `b` divides `a`
    at_most,            ///< a <= b
    at_most_where_set,  ///< a <= b, where neither is 0, which leaves it to a library
    product_at_most,    ///< a * b <= limit
    channels_at_most,   ///< no rule of `a` (kTuningRules) has more channels than `b`
    needs,              ///< where `a` is `value`, so is `b`; both are choices
  };
  Kind kind = Kind::divides;
  std::string a;
  std::string b;
  std::string help;  ///< why, in one clause
  std::int64_t limit = 0;
  std::string value = {};
};

class Settings;

/// The table of everything that can be set and done. Sent to the console at start, and printed by
/// `footplate-rank --schema`. Immutable once built; safe to read from any thread.
class Schema {
 public:
  std::vector<SettingSpec> settings;
  std::vector<ActionSpec> actions;
  std::vector<Constraint> constraints;
  std::vector<Hint> hints;

  const SettingSpec* setting(std::string_view name) const;
  const ActionSpec* action(std::string_view name) const;

  /// The setting of a variable as its library spells it, NCCL_BUFFSIZE; also as nccl.NCCL_BUFFSIZE and
  /// nccl.buffsize. Null: none.
  const SettingSpec* setting_of_variable(std::string_view name) const;
  /// Whether `name` is a library's: a setting's variable, or something that a hint tells of.
  bool knows_variable(std::string_view name) const;

  /// "unknown setting 'log.evry'; did you mean log.every?", or what an alias or a variable stands for.
  std::string unknown_setting(std::string_view name) const;
  std::string unknown_action(std::string_view name) const;

  /// A value for setting `name` from what a user wrote: type, unit, range and choices checked. The
  /// message names the setting, the value, what is allowed and the nearest name. Doesn't look at
  /// `applies` or roles: a config may set what a console may not.
  Result<Value> check(std::string_view name, const Json& value) const;

  /// The same for a live change: refuses `fixed` and computed settings with what to do instead.
  Result<Value> check_live(std::string_view name, const Json& value) const;

  /// Reads `text` ("0.5", "true", "adamw", "[0.9,0.99]") as KEY=VALUE on a command line.
  Result<Value> check_text(std::string_view name, std::string_view text) const;

  /// Arguments of an action, defaults filled in: an object by parameter name.
  Result<Json> check_arguments(std::string_view action, const Json& arguments) const;

  /// All constraints on a complete set of settings. The message has the two settings, with value and source.
  Result<void> check_combination(const Settings& settings) const;

  Json to_json() const;
  static Result<Schema> from_json(const Json& json);
};

/// "0.001 to 10 steps", "at least 1"; empty where nothing bounds it.
std::string range_text(const Range& range, std::string_view unit);

/// "10 to 1000 steps", "above 0", "one of adamw, sgd": what a setting allows, in words.
std::string allowed(const SettingSpec& spec);

/// The candidate with the smallest edit distance, if it is near enough to be meant; empty otherwise.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

/// "ckpt.save has no argument 'tg'; did you mean tag?", or what it takes.
std::string unknown_argument(const std::string& function, const std::string& name,
                             const std::vector<std::string>& known);

}  // namespace footplate
