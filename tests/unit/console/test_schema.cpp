#include "test_schema.h"

#include <limits>

#include "protocol/nccl/tuning_rules.h"

namespace footplate::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

SettingSpec setting(std::string name, Type type, Value value, std::string unit, Range range) {
  SettingSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  spec.default_value = std::move(value);
  spec.unit = std::move(unit);
  spec.range = range;
  spec.help = "help of " + spec.name;
  spec.example = spec.name + " = " + to_text(spec.default_value);
  return spec;
}

ParamSpec param(std::string name, Type type) {
  ParamSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  spec.help = "what it is";
  return spec;
}

ActionSpec action(std::string name, std::vector<ParamSpec> params, Role role) {
  ActionSpec spec;
  spec.name = std::move(name);
  spec.params = std::move(params);
  spec.role = role;
  spec.help = "help of " + spec.name;
  spec.example = spec.name + "()";
  return spec;
}

}  // namespace

Schema small_schema() {
  const Range any;
  const Range steps{0, 1e6, false};
  const Range positive{0, kInfinity, true};
  Schema schema;
  schema.settings = {
      setting("run.time_limit", Type::number, 0.0, "s", {0, kInfinity, false}),
      setting("model.width", Type::integer, std::int64_t{128}, "", positive),
      setting("train.steps", Type::integer, std::int64_t{2000}, "steps", positive),
      setting("train.clip_norm", Type::number, 1.0, "", {0, kInfinity, false}),
      setting("sched.kind", Type::choice, std::string("cosine"), "", any),
      setting("sched.base_lr", Type::number, 3e-4, "", positive),
      setting("optim.lr_scale", Type::number, 1.0, "", positive),
      setting("optim.weight_decay", Type::number, 0.1, "", {0, 1, false}),
      setting("optim.betas", Type::numbers, std::vector<double>{0.9, 0.95}, "", {0, 1, false}),
      setting("optim.lr", Type::number, 3e-4, "", positive),
      setting("eval.every", Type::integer, std::int64_t{200}, "steps", steps),
      setting("eval.batches", Type::integer, std::int64_t{0}, "", steps),
      setting("ckpt.every", Type::integer, std::int64_t{500}, "steps", steps),
      setting("nccl.buffer_bytes", Type::integer, std::int64_t{0}, "bytes", {0, 1 << 30, false}),
      setting("nccl.max_ctas", Type::integer, std::int64_t{0}, "", {0, 64, false}),
      setting("nccl.preset", Type::choice, std::string("none"), "", any),
      setting("nccl.rules", Type::string, std::string(), "", any),
      setting("nccl.socket_interface", Type::string, std::string(), "", any),
      setting("log.every", Type::integer, std::int64_t{50}, "steps", steps),
      setting("log.perf_every", Type::integer, std::int64_t{10}, "steps", steps),
      setting("log.detail_every", Type::integer, std::int64_t{50}, "steps", steps)};
  for (auto& spec : schema.settings) {
    if (spec.name == "model.width") spec.applies = Applies::fixed;
    if (spec.name == "optim.lr") {
      spec.knobs = {"sched.base_lr", "optim.lr_scale"};
      spec.metric = "train/lr";
    }
    if (spec.name == "sched.kind") spec.choices = {"cosine", "linear", "constant"};
    if (spec.name == "sched.base_lr") spec.aliases = {"train.lr"};
    if (spec.name == "nccl.buffer_bytes") spec.variable = "NCCL_BUFFSIZE";
    if (spec.name == "nccl.socket_interface") spec.variable = "NCCL_SOCKET_IFNAME";
    if (!spec.variable.empty()) spec.applies = Applies::restart;
    if (spec.name == "nccl.preset") {
      spec.choices = {"none", "infiniband", "ethernet", "pcie"};
      spec.applies = Applies::restart;
    }
    if (spec.name == "nccl.rules") spec.syntax = kTuningRules;
    if (spec.name.starts_with("log.")) spec.role = Role::operate;
  }
  ParamSpec batches = param("batches", Type::integer);
  batches.range = steps;
  schema.actions = {
      action("eval.now", {batches}, Role::operate),
      action("ckpt.save", {param("tag", Type::string)}, Role::operate),
      action(
          "ckpt.load",
          {param("ref", Type::string), param("settings", Type::string), param("set", Type::string),
           param("skip_steps", Type::integer), param("branch", Type::string), param("reason", Type::string)},
          Role::admin),
      action("nccl.measure", {param("steps", Type::integer)}, Role::operate),
      action("nccl.profile", {}, Role::operate),
      action("nccl.rebuild", {}, Role::admin),
      action("run.note", {param("text", Type::string)}, Role::operate),
      action("run.pause", {param("reason", Type::string)}, Role::operate),
      action("run.resume", {}, Role::operate),
      action("run.store",
             {param("name", Type::string), param("value", Type::string), param("keep", Type::boolean)},
             Role::operate),
      action("run.stop", {param("reason", Type::string), param("error", Type::string)}, Role::admin)};
  schema.constraints = {{Constraint::Kind::at_most, "eval.batches", "train.steps", "there are no more"}};
  schema.hints = {{"NCCL_TIMEOUT", "is no variable that NCCL reads; see comm.timeout_s", true}};
  return schema;
}

}  // namespace footplate::test
