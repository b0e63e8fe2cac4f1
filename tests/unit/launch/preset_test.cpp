// nccl.preset(): what is set, and what never is.
#include "protocol/network/preset.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "console/lua/config/config.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr std::array kAll = {"infiniband", "ethernet", "pcie", "nvlink", "conservative"};

NetworkReading cluster() {
  NetworkReading network;
  network.interface = Interface{"eth0", "up", 9000, 100000};
  network.infiniband = {"mlx5_0", "mlx5_1", "mlx5_2"};
  network.active_infiniband = {"mlx5_0", "mlx5_1"};
  return network;
}

std::map<std::string, std::string> set_by(const std::string& name, const NetworkReading& network,
                                          const std::set<std::string>& before = {}) {
  const auto preset =
      nccl_preset(name, network, [&](const std::string& setting) { return before.contains(setting); });
  EXPECT_TRUE(preset) << preset.error().message;
  std::map<std::string, std::string> changes;
  for (const auto& change : preset->changes) changes[change.name] = change.value.dump();
  return changes;
}

std::string said_by(const std::string& name, const NetworkReading& network,
                    const std::set<std::string>& before = {}) {
  const auto preset =
      nccl_preset(name, network, [&](const std::string& setting) { return before.contains(setting); });
  std::string text;
  for (const auto& line : preset->said) text += line + "\n";
  return text;
}

TEST(Preset, TheInterfaceIsTheRoutingTables) {
  EXPECT_THAT(set_by("ethernet", cluster()),
              ElementsAre(Pair("nccl.buffer_bytes", "8388608"), Pair("nccl.socket_interface", "\"=eth0\"")));
  EXPECT_THAT(set_by("ethernet", {}), ElementsAre(Pair("nccl.buffer_bytes", "8388608")));
  EXPECT_THAT(said_by("ethernet", {}), HasSubstr("routing table"));
}

TEST(Preset, AdaptersWithoutInfinibandAreLeftOut) {
  EXPECT_THAT(set_by("infiniband", cluster()),
              ElementsAre(Pair("nccl.ib_adapter", "\"=mlx5_0,mlx5_1\""), Pair("nccl.ib_timeout", "22"),
                          Pair("nccl.socket_interface", "\"=eth0\"")));
  NetworkReading all = cluster();
  all.active_infiniband = all.infiniband;
  EXPECT_FALSE(set_by("infiniband", all).contains("nccl.ib_adapter"));
  EXPECT_THAT(said_by("infiniband", {}), HasSubstr("no adapter of this host"));
}

TEST(Preset, WhatSomebodyHasSetStays) {
  for (const char* name : kAll) {
    const auto changes = set_by(name, cluster());
    std::set<std::string> before;
    for (const auto& [setting, value] : changes) before.insert(setting);
    EXPECT_THAT(set_by(name, cluster(), before), IsEmpty()) << name;
    for (const auto& setting : before)
      EXPECT_THAT(said_by(name, cluster(), before), HasSubstr(setting + " stays")) << name;
  }
}

TEST(Preset, OnlyTheConservativeOneSwitchesAnythingOff) {
  for (const char* name : {"infiniband", "ethernet", "pcie", "nvlink"})
    for (const auto& [setting, value] : set_by(name, cluster())) {
      EXPECT_NE(value, "\"off\"") << name << " " << setting;
      EXPECT_NE(value, "\"loc\"") << name << " " << setting;
      EXPECT_NE(setting, "nccl.algo") << name;
    }
  EXPECT_EQ(set_by("conservative", cluster()).at("nccl.p2p"), "\"off\"");
  EXPECT_THAT(said_by("nvlink", cluster(), {"nccl.p2p"}), HasSubstr("nccl.p2p is set, and may keep NCCL"));
}

TEST(Preset, EveryValueIsAllowed) {
  const Schema schema = runtime_schema();
  for (const char* name : kAll)
    for (const auto& [setting, value] : set_by(name, cluster())) {
      const auto checked = schema.check(setting, Json::parse(value));
      EXPECT_TRUE(checked) << checked.error().message;
    }
}

TEST(Preset, UnknownNames) {
  const auto preset = nccl_preset("etherent", {}, [](const std::string&) { return false; });
  ASSERT_FALSE(preset);
  EXPECT_THAT(preset.error().message,
              HasSubstr("one of infiniband, ethernet, pcie, nvlink, conservative; did you mean 'ethernet'?"));
}

TEST(Preset, AsASettingIsWhatAHostMakesOfItAndNothingThatIsSet) {
  const Schema schema = runtime_schema();
  Settings settings = Settings::defaults(schema);
  std::vector<std::string> said;
  EXPECT_EQ(with_preset(schema, settings, cluster(), said).string("nccl.socket_interface"), "") << "none";
  EXPECT_THAT(said, IsEmpty());
  settings.set("nccl.preset", std::string("ethernet"), "command line");
  settings.set("nccl.buffer_bytes", std::int64_t{4} << 20, "x.lua:3");
  const Settings here = with_preset(schema, settings, cluster(), said);
  EXPECT_EQ(here.string("nccl.socket_interface"), "=eth0");
  EXPECT_EQ(here.source("nccl.socket_interface"), "nccl.preset = \"ethernet\"");
  EXPECT_TRUE(is_preset(here.source("nccl.socket_interface")));
  EXPECT_EQ(here.integer("nccl.buffer_bytes"), 4 << 20) << "explicit settings win";
  EXPECT_EQ(here.source("nccl.buffer_bytes"), "x.lua:3");
  EXPECT_THAT(said, ElementsAre(HasSubstr("nccl.preset = \"ethernet\": nccl.buffer_bytes stays")));
  NetworkReading other = cluster();
  other.interface->name = "ens3";
  EXPECT_EQ(with_preset(schema, settings, other, said).string("nccl.socket_interface"), "=ens3");
}

/// What a rank sets at its start reaches NCCL through the environment: nothing else may be in these.
TEST(Preset, AsASettingSetsWhatIsReadAtAStart) {
  const Schema schema = runtime_schema();
  for (const std::string& name : schema.setting("nccl.preset")->choices) {
    Settings settings = Settings::defaults(schema);
    settings.set("nccl.preset", name, "test");
    std::vector<std::string> said;
    const Settings here = with_preset(schema, settings, cluster(), said);
    for (const SettingSpec& spec : schema.settings)
      if (is_preset(here.source(spec.name))) {
        EXPECT_EQ(spec.applies, Applies::restart) << spec.name;
        EXPECT_FALSE(spec.variable.empty()) << spec.name;
      }
  }
}

TEST(Preset, InAConfig) {
  const Schema schema = runtime_schema();
  const auto settings = evaluate_config_text(
      "nccl.buffer_bytes = \"1MiB\"\nnccl.preset(\"ethernet\")\nnccl.preset('conservative')", "x.lua", schema,
      Settings::defaults(schema));
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->integer("nccl.buffer_bytes"), 1 << 20);
  EXPECT_EQ(settings->string("nccl.algo"), "ring");
  EXPECT_EQ(settings->source("nccl.algo"), "x.lua:3");
  const auto by_name =
      evaluate_config_text("nccl.preset = \"infiniband\"", "x.lua", schema, Settings::defaults(schema));
  ASSERT_TRUE(by_name) << by_name.error().message;
  EXPECT_EQ(by_name->string("nccl.preset"), "infiniband");
  EXPECT_EQ(by_name->source("nccl.ib_timeout"), "default") << "each host does it at its start";
  const auto error = [&](const char* text) {
    const auto result = evaluate_config_text(text, "x.lua", schema, Settings::defaults(schema));
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_THAT(error("nccl.preset('fast')"), HasSubstr("x.lua:1: nccl.preset can't be 'fast'"));
  EXPECT_THAT(error("nccl.preset = 'etherent'"), HasSubstr("nccl.preset"));
  EXPECT_THAT(error("nccl.preset(5)"), HasSubstr("nccl.preset(\"ethernet\")"));
  EXPECT_THAT(error("NCCL_BUFFSIZE = 1"), HasSubstr("it is called nccl.buffer_bytes"));
  EXPECT_THAT(error("nccl.timeout = 1"), HasSubstr("comm.timeout_s"));
}

}  // namespace
}  // namespace footplate
