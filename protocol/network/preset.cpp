#include "protocol/network/preset.h"

#include <array>

#include "protocol/schema.h"

namespace footplate {
namespace {

constexpr auto kNoPreset = "none";
const std::string kOfPreset = "nccl.preset = \"";  ///< and its name: a source
constexpr std::int64_t kEthernetBuffer = 8 << 20;  ///< bytes; twice NCCL's own
constexpr int kPatientAdapter = 22;                ///< 4.096 us * 2^22 = 17 s, NCCL's own is 4.3 s

/// Collects what is set and what is left because somebody has set it.
class Collector {
 public:
  explicit Collector(const std::function<bool(const std::string&)>& is_set) : is_set_(is_set) {}

  void set(const std::string& name, Json value) {
    if (is_set_(name))
      preset.said.push_back(name + " stays: it is set already");
    else
      preset.changes.push_back({name, std::move(value)});
  }
  void say(std::string line) { preset.said.push_back(std::move(line)); }
  bool is_set(const std::string& name) const { return is_set_(name); }

  Preset preset;

 private:
  const std::function<bool(const std::string&)>& is_set_;
};

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

void set_interface(Collector& collector, const NetworkReading& network) {
  if (network.interface)
    collector.set("nccl.socket_interface", "=" + network.interface->name);
  else
    collector.say(
        "no interface leads to other hosts (routing table): nccl.socket_interface is NCCL's choice");
}

void infiniband(Collector& collector, const NetworkReading& network) {
  collector.set("nccl.ib_timeout", kPatientAdapter);
  if (network.active_infiniband.empty())
    collector.say("no adapter of this host has a port of InfiniBand that is up (/sys/class/infiniband)");
  else if (network.active_infiniband.size() < network.infiniband.size())
    collector.set("nccl.ib_adapter", "=" + joined(network.active_infiniband));
  else
    collector.say("all adapters are InfiniBand's and up: NCCL takes all of them by itself");
  set_interface(collector, network);
}

void ethernet(Collector& collector, const NetworkReading& network) {
  set_interface(collector, network);
  collector.set("nccl.buffer_bytes", kEthernetBuffer);
}

void pcie(Collector& collector, const NetworkReading& /*network*/) {
  collector.set("nccl.p2p_level", "phb");
  collector.say(
      "peer-to-peer also between devices that only the processor connects, where NCCL by itself stops at PCI "
      "switches on most machines; if that hangs, the PCI switches' access control (ACS) is on");
}

void nvlink(Collector& collector, const NetworkReading& /*network*/) {
  collector.say("NCCL finds NVLink and NVSwitch and takes them by itself: there is nothing to set");
  for (const char* name : {"nccl.p2p", "nccl.p2p_level", "nccl.nvls", "nccl.algo"})
    if (collector.is_set(name))
      collector.say(std::string(name) + " is set, and may keep NCCL from them (help(\"" + name + "\"))");
}

void conservative(Collector& collector, const NetworkReading& /*network*/) {
  collector.set("nccl.algo", "ring");
  collector.set("nccl.proto", "simple");
  collector.set("nccl.nvls", "off");
  collector.set("nccl.p2p", "off");
  collector.set("nccl.ib_timeout", kPatientAdapter);
  collector.say("slow on purpose, for finding out whether NCCL's faster ways are what fails");
}

struct Entry {
  const char* name;
  void (*apply)(Collector&, const NetworkReading&);
};
constexpr std::array kPresets = {Entry{"infiniband", infiniband}, Entry{"ethernet", ethernet},
                                 Entry{"pcie", pcie}, Entry{"nvlink", nvlink},
                                 Entry{"conservative", conservative}};

}  // namespace

Result<Preset> nccl_preset(std::string_view name, const NetworkReading& network,
                           const std::function<bool(const std::string& setting)>& is_set) {
  std::vector<std::string> names;
  for (const Entry& entry : kPresets) {
    names.emplace_back(entry.name);
    if (name != entry.name) continue;
    Collector collector(is_set);
    entry.apply(collector, network);
    return std::move(collector.preset);
  }
  const std::string near = nearest(name, names);
  std::string list;
  for (const auto& known : names) list += (list.empty() ? "" : ", ") + known;
  return fail(ErrorKind::usage, "nccl.preset can't be '" + excerpt(name) + "'; it is one of " + list +
                                    (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

bool is_preset(const std::string& source) {
  return source.starts_with(kOfPreset);
}

Settings with_preset(const Schema& schema, Settings settings, const NetworkReading& network,
                     std::vector<std::string>& said) {
  const std::string name = settings.has("nccl.preset") ? settings.string("nccl.preset") : kNoPreset;
  if (name == kNoPreset) return settings;
  const auto preset = nccl_preset(
      name, network, [&](const std::string& setting) { return settings.source(setting) != "default"; });
  if (!preset) return settings;  // the schema knows the names
  const std::string source = kOfPreset + name + "\"";
  for (const Preset::Change& change : preset->changes)
    if (auto value = schema.check(change.name, change.value))
      settings.set(change.name, *std::move(value), source);
  for (const std::string& line : preset->said) said.push_back(source + ": " + line);
  return settings;
}

}  // namespace footplate
