#include "console/host/automation/script_run.h"

namespace footplate::host {

ScriptRun::ScriptRun(std::filesystem::path run_directory, const Limits& its_limits, ScriptPorts its_ports)
    : directory(std::move(run_directory)),
      limits(its_limits),
      ports(std::move(its_ports)),
      own(kFirstClient + 1, Connection(Fd(), 1)),
      now(Clock::now()) {
  own.session = "rules";
  own.role = Role::admin;
}

void ScriptRun::warn_of(const Rule& rule, const std::string& text) {
  Warning warning;
  warning.kind = WarningKind::script;
  warning.text = text;
  warning.rule = rule.number;
  publish(std::move(warning));
}

void ScriptRun::warn_of(const std::string& job, const std::string& text) {
  Warning warning;
  warning.kind = WarningKind::script;
  warning.text = text;
  warning.job = job;
  publish(std::move(warning));
}

void ScriptRun::act(const std::string& action, const char* argument, const std::string& why) {
  Order order;
  order.source = "-- " + why;
  order.calls.push_back({action, {{argument, why}}});
  stopping = stopping || action == "run.stop";
  if (const auto ref = ports.submit(own, std::move(order)); !ref) ports.log(ref.error().message);
}

}  // namespace footplate::host
