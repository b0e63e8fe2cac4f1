// Settings that stand for environment variables of a library, with the real ones: NCCL's.
#include "protocol/nccl/variables.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <set>

#include "protocol/nccl/variable_files.h"
#include "runtime/schema/schema_table.h"
#include "tests/unit/protocol/fixture.h"

namespace footplate {
namespace {

using test::message;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class VariablesTest : public testing::Test {
 protected:
  std::vector<std::string> take(const Environment& environment, const std::vector<VariableFile>& files = {}) {
    return take_environment(schema_, environment, files, settings_);
  }
  void set(const char* name, const Json& value, const char* source = "configs/x.lua:3") {
    const auto checked = schema_.check(name, value);
    ASSERT_TRUE(checked) << message(checked);
    settings_.set(name, *checked, source);
  }
  /// NAME=VALUE of what a rank sets.
  std::vector<std::string> to_set(const Environment& environment = {}) {
    std::vector<std::string> list;
    for (const auto& variable : variables_to_set(schema_, settings_, environment))
      list.push_back(variable.name + "=" + variable.text);
    return list;
  }

  const Schema schema_ = runtime_schema();
  Settings settings_ = Settings::defaults(schema_);
};

TEST_F(VariablesTest, DefaultsSetNothing) {
  EXPECT_THAT(to_set(), IsEmpty());
}

TEST_F(VariablesTest, EverySettingOfNcclHasAVariableOfItsOwnThatReadsBack) {
  const std::set<std::string> kOwn{"nccl.rules", "nccl.coalesce", "nccl.preset"};  // footplate's, not NCCL's
  const std::string foreign = "debug.sync_launches";                               // CUDA's
  std::set<std::string> variables;
  int count = 0;
  for (const auto& spec : schema_.settings) {
    const bool of_nccl = spec.name.starts_with("nccl.") && !kOwn.contains(spec.name);
    EXPECT_EQ(spec.variable.empty(), !of_nccl && spec.name != foreign) << spec.name;
    if (spec.variable.empty()) continue;
    count += of_nccl ? 1 : 0;
    EXPECT_TRUE(spec.variable.starts_with(of_nccl ? "NCCL_" : "CUDA_")) << spec.name;
    EXPECT_TRUE(variables.insert(spec.variable).second) << spec.variable << " twice";
    EXPECT_NE(spec.applies, Applies::fixed) << spec.name;
    EXPECT_EQ(schema_.setting_of_variable(spec.variable), &spec);
    std::vector<Value> values;
    for (const auto& choice : spec.choices) values.emplace_back(choice);
    if (spec.type == Type::integer) values.emplace_back(static_cast<std::int64_t>(spec.range.max));
    if (spec.type == Type::string) values.emplace_back(std::string("=eth0,eth1"));
    for (const Value& value : values) {
      const auto text = variable_text(spec, value);
      EXPECT_EQ(text.has_value(), value != spec.default_value) << spec.name;
      if (!text) continue;
      const auto back = value_of_variable(schema_, spec, *text);
      EXPECT_TRUE(back && *back == value) << spec.name << " " << *text << " " << message(back);
    }
  }
  EXPECT_GE(count, 20);
}

TEST_F(VariablesTest, ValuesAreWrittenAsNcclReadsThem) {
  set("nccl.buffer_bytes", "8MiB");
  set("nccl.p2p", "off");
  set("nccl.p2p_level", "phb");
  set("nccl.nvls", "off");
  set("nccl.max_ctas", 8);  // its communicators are given it: as a variable it would count for more
  set("nccl.socket_interface", "=eth0");
  set("nccl.proto", "no_ll128");  // the tuner says so at each collective, as nccl.algo and nccl.rules
  set("nccl.algo", "tree");
  set("nccl.rules", "..1MiB ring");
  EXPECT_THAT(to_set(), ElementsAre("NCCL_BUFFSIZE=8388608", "NCCL_P2P_DISABLE=1", "NCCL_P2P_LEVEL=PHB",
                                    "NCCL_NVLS_ENABLE=0", "NCCL_SOCKET_IFNAME==eth0"));
}

TEST_F(VariablesTest, TheEnvironmentCountsForMoreAndSaysSo) {
  set("nccl.buffer_bytes", 1 << 20);
  EXPECT_THAT(take({{"NCCL_BUFFSIZE", "4194304"}, {"NCCL_IB_TIMEOUT", "22"}, {"NCCL_DEBUG", "info"}}),
              ElementsAre("NCCL_BUFFSIZE=4194304 in the environment overrides nccl.buffer_bytes = 1048576 "
                          "(configs/x.lua:3); unset it to let the setting count"));
  EXPECT_EQ(settings_.integer("nccl.buffer_bytes"), 4194304);
  EXPECT_EQ(settings_.source("nccl.buffer_bytes"), "environment");
  EXPECT_EQ(settings_.integer("nccl.ib_timeout"), 22);
  EXPECT_EQ(settings_.string("nccl.debug"), "info") << "as NCCL, whatever its case";
  EXPECT_EQ(settings_.source("nccl.p2p"), "default");
  EXPECT_THAT(take({{"NCCL_IB_TIMEOUT", "22"}}), IsEmpty());
  EXPECT_EQ(settings_.source("nccl.buffer_bytes"), "default") << "of an earlier start's environment";
}

TEST_F(VariablesTest, TheSameValueOverridesNothing) {
  set("nccl.ib_timeout", 22);
  EXPECT_THAT(take({{"NCCL_IB_TIMEOUT", "22"}}), IsEmpty());
}

TEST_F(VariablesTest, WhatASettingCantSayStaysWithNccl) {
  set("nccl.algo", "ring");
  EXPECT_THAT(
      take({{"NCCL_ALGO", "Ring,Tree"}, {"NCCL_IB_TIMEOUT", "many"}}),
      ElementsAre(HasSubstr("NCCL_ALGO=Ring,Tree in the environment overrides nccl.algo = \"ring\"")));
  EXPECT_EQ(settings_.source("nccl.algo"), "environment, NCCL_ALGO=Ring,Tree");
  EXPECT_EQ(settings_.string("nccl.algo"), "auto");
  EXPECT_EQ(settings_.source("nccl.ib_timeout"), "environment, NCCL_IB_TIMEOUT=many");
  EXPECT_THAT(to_set({{"NCCL_ALGO", "Ring,Tree"}}), IsEmpty());
}

TEST_F(VariablesTest, ARankLeavesWhatItsEnvironmentHas) {
  set("nccl.ib_timeout", 22);
  set("nccl.ib_retries", 5);
  EXPECT_THAT(to_set({{"NCCL_IB_TIMEOUT", "18"}}), ElementsAre("NCCL_IB_RETRY_CNT=5"));
  EXPECT_THAT(to_set({{"NCCL_IB_TIMEOUT", ""}}), ElementsAre("NCCL_IB_TIMEOUT=22", "NCCL_IB_RETRY_CNT=5"))
      << "empty is as good as not there";
}

TEST_F(VariablesTest, ForeignVariablesAreSaidToDoNothing) {
  const auto said = take({{"NCCL_TIMEOUT", "1800"}, {"TORCH_NCCL_TRACE_BUFFER_SIZE", "1"}, {"HOME", "/"}});
  ASSERT_EQ(said.size(), 2u);
  EXPECT_THAT(said[0], HasSubstr("NCCL_TIMEOUT=1800 in the environment does nothing here"));
  EXPECT_THAT(said[0], HasSubstr("comm.timeout_s"));
  EXPECT_THAT(said[1], HasSubstr("PyTorch"));
  EXPECT_THAT(take({{"NCCL_NET_PLUGIN", "libnccl-net-x.so"}}), IsEmpty()) << "that one NCCL reads";
}

TEST_F(VariablesTest, WhatNcclsFilesSayCountsAsTheEnvironments) {
  set("nccl.ib_timeout", 18);
  set("nccl.max_ctas", 8);
  const std::vector<VariableFile> files{
      {"/home/u/.nccl.conf", {{"NCCL_IB_TIMEOUT", "22"}, {"NCCL_ALGO", "Ring,Tree"}}},
      {"/etc/nccl.conf", {{"NCCL_IB_TIMEOUT", "20"}, {"NCCL_BUFFSIZE", "4194304"}, {"NCCL_TIMEOUT", "5"}}}};
  const auto said = take({{"NCCL_MAX_CTAS", "4"}}, files);
  EXPECT_THAT(
      said, UnorderedElementsAre("NCCL_IB_TIMEOUT=22 in /home/u/.nccl.conf overrides nccl.ib_timeout = 18 "
                                 "(configs/x.lua:3); take that line out to let the setting count, or set "
                                 "NCCL_IB_TIMEOUT in the environment, which counts for more than the file",
                                 HasSubstr("NCCL_MAX_CTAS=4 in the environment overrides nccl.max_ctas = 8"),
                                 HasSubstr("NCCL_TIMEOUT=5 in /etc/nccl.conf does nothing here")));
  EXPECT_EQ(settings_.integer("nccl.ib_timeout"), 22);
  EXPECT_EQ(settings_.source("nccl.ib_timeout"), "environment (/home/u/.nccl.conf)");
  EXPECT_EQ(settings_.source("nccl.buffer_bytes"), "environment (/etc/nccl.conf)");
  EXPECT_EQ(settings_.source("nccl.algo"), "environment (/home/u/.nccl.conf), NCCL_ALGO=Ring,Tree");
  EXPECT_EQ(settings_.source("nccl.max_ctas"), "environment");
  EXPECT_TRUE(is_from_environment(settings_.source("nccl.buffer_bytes")));
  EXPECT_THAT(to_set(), IsEmpty()) << "each host's NCCL reads its own file";
  EXPECT_THAT(take({}), IsEmpty());
  EXPECT_EQ(settings_.source("nccl.buffer_bytes"), "default") << "of an earlier start's file";
}

TEST_F(VariablesTest, TheEnvironmentCountsForMoreThanAFileAndAnEmptyVariableHidesIt) {
  set("nccl.ib_timeout", 18);
  const std::vector<VariableFile> files{{"/etc/nccl.conf", {{"NCCL_IB_TIMEOUT", "20"}}}};
  EXPECT_THAT(take({{"NCCL_IB_TIMEOUT", ""}}, files), IsEmpty());
  EXPECT_EQ(settings_.integer("nccl.ib_timeout"), 18);
  EXPECT_THAT(to_set({{"NCCL_IB_TIMEOUT", ""}}), ElementsAre("NCCL_IB_TIMEOUT=18"));
  EXPECT_THAT(take({{"NCCL_IB_TIMEOUT", "19"}}, files), ElementsAre(HasSubstr("=19 in the environment")));
  EXPECT_EQ(settings_.source("nccl.ib_timeout"), "environment");
}

TEST_F(VariablesTest, AFileIsReadAsNcclReadsIt) {
  const std::string path = testing::TempDir() + "nccl-" + std::to_string(::getpid()) + ".conf";
  std::ofstream(path) << "# NCCL_P2P_DISABLE=1\n"
                         " NCCL_SHM_DISABLE=1\n"
                         "NCCL_IB_TIMEOUT=20\nNCCL_IB_TIMEOUT=21\n"
                         "NCCL_SOCKET_IFNAME==eth0\nno line\nNCCL_DEBUG=\n"
                         "NCCL_IB_HCA="
                      << std::string(2000, 'x');
  const auto read = read_variable_file(path);
  const Environment wanted{{" NCCL_SHM_DISABLE", "1"},
                           {"NCCL_IB_TIMEOUT", "20"},
                           {"NCCL_SOCKET_IFNAME", "=eth0"},
                           {"NCCL_DEBUG", ""},
                           {"NCCL_IB_HCA", std::string(1023, 'x')}};
  EXPECT_EQ(read, wanted);
  const auto files = nccl_files({{"NCCL_CONF_FILE", path}});
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files.front().path, path);
  EXPECT_EQ(files.front().variables, wanted);
  EXPECT_THAT(read_variable_file("/dev/zero"), IsEmpty());
  EXPECT_THAT(read_variable_file(testing::TempDir()), IsEmpty());
  for (const auto& file : nccl_files({{"NCCL_CONF_FILE", "/nowhere"}}))
    EXPECT_EQ(file.path, "/etc/nccl.conf") << "the user's own isn't read then";
  std::remove(path.c_str());
}

TEST_F(VariablesTest, OtherPeoplesNamesAreAnsweredWithOurs) {
  const auto answer = [&](const char* name) { return schema_.unknown_setting(name); };
  EXPECT_EQ(answer("NCCL_BUFFSIZE"), "unknown setting 'NCCL_BUFFSIZE'; it is called nccl.buffer_bytes");
  EXPECT_THAT(answer("nccl.NCCL_BUFFSIZE"), HasSubstr("it is called nccl.buffer_bytes"));
  EXPECT_THAT(answer("nccl.buffsize"), HasSubstr("it is called nccl.buffer_bytes"));
  EXPECT_THAT(answer("NCCL_BUFSIZE"),
              HasSubstr("did you mean NCCL_BUFFSIZE? It is called nccl.buffer_bytes"));
  EXPECT_THAT(answer("NCCL_TIMEOUT"), HasSubstr("comm.timeout_s"));
  EXPECT_THAT(answer("nccl.timeout"), HasSubstr("comm.timeout_s"));
  EXPECT_THAT(answer("NCCL_BLOCKING_WAIT"), HasSubstr("not NCCL's but of PyTorch's"));
  EXPECT_THAT(answer("TORCH_NCCL_ASYNC_ERROR_HANDLING"), HasSubstr("comm.on_loss"));
  EXPECT_THAT(answer("TORCH_NCCL_DUMP_ON_TIMEOUT"), HasSubstr("PyTorch"));
  for (const char* name :
       {"NCCL_TUNER_PLUGIN", "nccl.net_plugin", "NCCL_CONF_FILE", "NCCL_TOPO_FILE", "nccl.debug_file"})
    EXPECT_THAT(answer(name), HasSubstr("a console can't")) << name;
  EXPECT_THAT(answer("NCCL_WORK_FIFO_BYTES"), HasSubstr("reaches NCCL as it is"));
  EXPECT_THAT(answer("nccl.algorithm"), HasSubstr("it is called nccl.algo"));
  EXPECT_THAT(answer("NCCL_MAX_NCHANNELS"), HasSubstr("it is called nccl.max_ctas"));
}

TEST_F(VariablesTest, ValuesAreRefusedWithWhatIsAllowed) {
  const auto check = [&](const char* name, const Json& value) { return message(schema_.check(name, value)); };
  EXPECT_EQ(check("nccl.ib_timeout", 23), "nccl.ib_timeout can't be 23; allowed: 0 to 22");
  EXPECT_THAT(check("nccl.algo", "rign"), HasSubstr("did you mean 'ring'?"));
  EXPECT_THAT(check("nccl.socket_interface", "eth0 --x"), HasSubstr("without blanks"));
  EXPECT_THAT(check("nccl.socket_interface", "eth0\nX=1"), HasSubstr("without blanks"));
  EXPECT_THAT(check("nccl.socket_interface", std::string(300, 'e')), HasSubstr("up to 256"));
  EXPECT_EQ(check("nccl.socket_interface", "^docker0,lo"), "accepted");
  EXPECT_EQ(check("nccl.net", std::string(63, 'x')), "accepted");
  EXPECT_EQ(check("nccl.net", std::string(80, 'x')),
            "nccl.net can't have 80 characters; allowed: 0 to 63 characters");
}

}  // namespace
}  // namespace footplate
