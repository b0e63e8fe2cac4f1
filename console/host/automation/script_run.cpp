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

void ScriptRun::publish(const std::string& topic, const Json& data) {
  ports.to_rank({{"type", "publish"}, {"topic", topic}, {"data", data}});
}

void ScriptRun::warn(const std::string& text, const Json& more) {
  Json data = {{"kind", "script"}, {"text", text}};
  data.update(more);
  publish("warn", data);
}

void ScriptRun::act(const std::string& action, const Json& arguments) {
  Order order;
  order.source = "-- " + arguments.begin()->get<std::string>();
  order.calls.push_back({action, arguments});
  stopping = stopping || action == "run.stop";
  if (const auto ref = ports.submit(own, std::move(order)); !ref) ports.log(ref.error().message);
}

}  // namespace footplate::host
