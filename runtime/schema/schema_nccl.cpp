#include "runtime/schema/schema_nccl.h"

#include <string>
#include <utility>

#include "protocol/nccl/tuning_rules.h"

namespace footplate {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// A choice whose "auto", its default, leaves the variable to NCCL.
constexpr const char* kAuto = "auto";

SettingSpec of_variable(std::string name, const char* variable, Type type, Value value, std::string help,
                        std::string example) {
  SettingSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  spec.default_value = std::move(value);
  spec.help = std::move(help);
  spec.example = std::move(example);
  spec.applies = Applies::restart;
  spec.variable = variable;
  return spec;
}

/// `values`: what each choice is in the variable, that of "auto" first.
SettingSpec choice(std::string name, const char* variable, Pairs values, std::string help,
                   std::string example) {
  SettingSpec spec = of_variable(std::move(name), variable, Type::choice, std::string(kAuto), std::move(help),
                                 std::move(example));
  for (const auto& [value, text] : values) spec.choices.push_back(value);
  spec.variable_values = std::move(values);
  return spec;
}

/// A number; `automatic`, its default, leaves it to NCCL.
SettingSpec integer(std::string name, const char* variable, std::int64_t automatic, double max,
                    std::string help, std::string example, std::string unit = "") {
  SettingSpec spec = of_variable(std::move(name), variable, Type::integer, automatic,
                                 std::move(help) + "; " + std::to_string(automatic) + " = NCCL's choice",
                                 std::move(example));
  spec.range = {static_cast<double>(automatic), max, false};
  spec.unit = std::move(unit);
  return spec;
}

/// What NCCL is told at each collective (runtime/cuda/tuning.h), or reads again when it is asked to.
SettingSpec of_collective(SettingSpec spec) {
  spec.applies = Applies::step;
  return spec;
}

/// What a communicator is made with (ncclConfig_t), and so can be changed with new ones.
SettingSpec of_communicator(SettingSpec spec) {
  spec.applies = Applies::comm;
  return spec;
}

SettingSpec text(std::string name, const char* variable, std::string help, std::string example) {
  return of_variable(std::move(name), variable, Type::string, std::string(),
                     std::move(help) + "; empty = NCCL's choice", std::move(example));
}

/// What of all-reduces alone is asked for leaves the other collectives as they are: broadcasts, say, know no
/// tree. Named one by one because what isn't named would be off (NCCL 2.31).
std::string for_all_reduce(const std::string& algorithm) {
  return "Tree,Ring,CollNetDirect,CollNetChain,NVLS,NVLSTree,PAT;allreduce:" + algorithm;
}

void add_choice_of_algorithm(std::vector<SettingSpec>& table) {
  table.push_back(of_collective(
      choice("nccl.algo", "NCCL_ALGO",
             {{kAuto, ""},
              {"ring", for_all_reduce("Ring")},
              {"tree", for_all_reduce("Tree")},
              {"collnet_direct", for_all_reduce("CollNetDirect")},
              {"collnet_chain", for_all_reduce("CollNetChain")},
              {"nvls", for_all_reduce("NVLS")},
              {"nvls_tree", for_all_reduce("NVLSTree")}},
             "Algorithm of all-reduces of any size; nccl.rules tells sizes apart. Where NCCL can't do one "
             "so here it does as it would have, and a warning says so",
             "nccl.algo = \"ring\"")));
  table.push_back(of_collective(choice(
      "nccl.proto", "NCCL_PROTO", {{kAuto, ""}, {"simple", "Simple"}, {"ll", "LL"}, {"no_ll128", "^LL128"}},
      "Protocol of all collectives. LL128 can't be forced: where NCCL doesn't take it by "
      "itself it may corrupt data",
      "nccl.proto = \"simple\"")));
  SettingSpec rules;
  rules.name = "nccl.rules";
  rules.type = Type::string;
  rules.default_value = std::string();
  rules.syntax = kTuningRules;
  rules.help =
      "How NCCL does collectives of which size: rules with ; between them, the first that fits counts. Words "
      "of a "
      "rule: sizes (..1MiB, 1MiB..64MiB, 64MiB..), an algorithm, a protocol, 4 channels, a collective other "
      "than "
      "all_reduce";
  rules.example = "nccl.rules = \"..1MiB tree ll; 64MiB.. ring simple\"";
  rules.applies = Applies::step;
  table.push_back(std::move(rules));
  SettingSpec coalesce;
  coalesce.name = "nccl.coalesce";
  coalesce.type = Type::integer;
  coalesce.default_value = std::int64_t{16};
  coalesce.range = {1, 1024, false};
  coalesce.help =
      "How many pieces of a bucket (comm.chunk_elements) NCCL gets as one group, and launches as one; 1: "
      "each "
      "by itself";
  coalesce.example = "nccl.coalesce = 4";
  coalesce.applies = Applies::step;
  coalesce.unit = "pieces";
  coalesce.aliases = {"nccl.group", "nccl.group_size", "nccl.aggregate", "coalesce"};
  table.push_back(std::move(coalesce));
  table.push_back(of_communicator(integer("nccl.min_ctas", "NCCL_MIN_CTAS", 0, 64,
                                          "Least blocks of a device (channels) that a collective takes",
                                          "nccl.min_ctas = 4")));
  table.push_back(of_communicator(
      integer("nccl.max_ctas", "NCCL_MAX_CTAS", 0, 64,
              "Most blocks of a device (channels) that a collective takes; fewer leave more to "
              "computing",
              "nccl.max_ctas = 8")));
  table.push_back(of_communicator(integer(
      "nccl.cga_cluster_size", "NCCL_CGA_CLUSTER_SIZE", -1, 8,
      "Blocks of a cluster on devices that have clusters (Hopper and later)", "nccl.cga_cluster_size = 2")));
  table.push_back(of_communicator(integer(
      "nccl.nvls_ctas", "NCCL_NVLS_NCHANNELS", 0, 64,
      "Blocks of a device (channels) that a reduction in the NVSwitch takes", "nccl.nvls_ctas = 16")));
  table.push_back(of_communicator(
      choice("nccl.collnet", "NCCL_COLLNET_ENABLE", {{kAuto, ""}, {"on", "1"}, {"off", "0"}},
             "Reductions in the switches of the network (InfiniBand SHARP)", "nccl.collnet = \"on\"")));
  table.push_back(integer("nccl.buffer_bytes", "NCCL_BUFFSIZE", 0, 1 << 30,
                          "Buffer between two ranks, for each channel; larger ones cost device memory",
                          "nccl.buffer_bytes = \"8MiB\"", "bytes"));
}

void add_paths(std::vector<SettingSpec>& table) {
  table.push_back(choice("nccl.p2p", "NCCL_P2P_DISABLE", {{kAuto, "0"}, {"off", "1"}},
                         "Peer-to-peer between devices of a host, over NVLink or PCI. Off is slow: for "
                         "finding faults",
                         "nccl.p2p = \"off\""));
  table.push_back(
      choice("nccl.p2p_level", "NCCL_P2P_LEVEL",
             {{kAuto, ""},
              {"loc", "LOC"},
              {"nvl", "NVL"},
              {"pix", "PIX"},
              {"pxb", "PXB"},
              {"phb", "PHB"},
              {"sys", "SYS"}},
             "How far apart devices may be for peer-to-peer: loc never, nvl over NVLink, pix over "
             "one PCI switch, pxb over several, phb over the processor, sys also between "
             "processors",
             "nccl.p2p_level = \"phb\""));
  table.push_back(choice("nccl.shared_memory", "NCCL_SHM_DISABLE", {{kAuto, "0"}, {"off", "1"}},
                         "Host memory between devices of a host that have no peer-to-peer; off: the network",
                         "nccl.shared_memory = \"off\""));
  table.push_back(
      choice("nccl.nvls", "NCCL_NVLS_ENABLE", {{kAuto, "2"}, {"on", "1"}, {"off", "0"}},
             "Reductions in the NVSwitch (NVLink SHARP). auto: where it can be had; on: the start "
             "fails where it can't",
             "nccl.nvls = \"off\""));
  table.push_back(
      choice("nccl.gpu_direct_level", "NCCL_NET_GDR_LEVEL",
             {{kAuto, ""}, {"loc", "LOC"}, {"pix", "PIX"}, {"pxb", "PXB"}, {"phb", "PHB"}, {"sys", "SYS"}},
             "How far a network adapter may be from a device whose memory it reads and writes "
             "(GPUDirect RDMA); loc: never",
             "nccl.gpu_direct_level = \"phb\""));
  table.push_back(choice("nccl.cross_nic", "NCCL_CROSS_NIC", {{kAuto, "2"}, {"on", "1"}, {"off", "0"}},
                         "Whether a ring may leave a host by one adapter and enter the next by another",
                         "nccl.cross_nic = \"off\""));
}

void add_network(std::vector<SettingSpec>& table) {
  constexpr double kLongestNet = 63;  // CommunicatorConfig::kLongestName
  table.push_back(of_communicator(text(
      "nccl.net", "NCCL_NET",
      "Network between hosts, by its name: IB, Socket, or that of the plugin that NCCL has loaded (its log "
      "names it: nccl.debug). One that isn't there is refused, with new communicators as with a start",
      "nccl.net = \"Socket\"")));
  table.back().range = {0, kLongestNet, false};
  table.back().unit = "characters";
  table.push_back(text("nccl.socket_interface", "NCCL_SOCKET_IFNAME",
                       "Interface that ranks meet over, and talk over where there is no InfiniBand: =eth0 "
                       "exactly this one, eth all that begin so, ^docker all but these",
                       "nccl.socket_interface = \"=eth0\""));
  table.push_back(choice("nccl.socket_family", "NCCL_SOCKET_FAMILY",
                         {{kAuto, ""}, {"ipv4", "AF_INET"}, {"ipv6", "AF_INET6"}}, "Addresses that it uses",
                         "nccl.socket_family = \"ipv4\""));
  table.push_back(integer("nccl.socket_threads", "NCCL_SOCKET_NTHREADS", 0, 16,
                          "Threads for each connection over TCP", "nccl.socket_threads = 4", "threads"));
  table.push_back(integer("nccl.sockets_per_thread", "NCCL_NSOCKS_PERTHREAD", 0, 64,
                          "Sockets of each of these threads; threads times sockets is at most 64",
                          "nccl.sockets_per_thread = 4", "sockets"));
  table.push_back(choice("nccl.ib", "NCCL_IB_DISABLE", {{kAuto, "0"}, {"off", "1"}},
                         "InfiniBand and RoCE; off: TCP instead", "nccl.ib = \"off\""));
  table.push_back(text("nccl.ib_adapter", "NCCL_IB_HCA",
                       "Adapters for InfiniBand and RoCE: =mlx5_0,mlx5_1 exactly these, mlx5 all that begin "
                       "so, ^mlx5_2 all but these",
                       "nccl.ib_adapter = \"=mlx5_0,mlx5_1\""));
  table.push_back(integer("nccl.ib_timeout", "NCCL_IB_TIMEOUT", 0, 22,
                          "Exponent of an adapter's time-out, 4.096 us * 2^n: 20 is 4.3 s, 22 17 s",
                          "nccl.ib_timeout = 22"));
  table.push_back(integer("nccl.ib_retries", "NCCL_IB_RETRY_CNT", 0, 7,
                          "How often an adapter sends again before it gives up", "nccl.ib_retries = 7"));
  table.push_back(integer("nccl.ib_gid_index", "NCCL_IB_GID_INDEX", -1, 255,
                          "Which of an adapter's addresses RoCE uses", "nccl.ib_gid_index = 3"));
  table.push_back(integer("nccl.ib_service_level", "NCCL_IB_SL", -1, 15, "Service level of InfiniBand",
                          "nccl.ib_service_level = 1"));
  table.push_back(
      of_communicator(integer("nccl.ib_traffic_class", "NCCL_IB_TC", -1, 255,
                              "Traffic class of InfiniBand and RoCE", "nccl.ib_traffic_class = 106")));
  table.push_back(integer("nccl.ib_queue_pairs", "NCCL_IB_QPS_PER_CONNECTION", 0, 128,
                          "Queue pairs for each connection of two ranks", "nccl.ib_queue_pairs = 4"));
}

void add_log(std::vector<SettingSpec>& table) {
  table.push_back(of_collective(choice(
      "nccl.debug", "NCCL_DEBUG",
      {{kAuto, ""}, {"version", "VERSION"}, {"warn", "WARN"}, {"info", "INFO"}, {"trace", "TRACE"}},
      "What NCCL logs itself, to log/nccl-HOST-PID.log of the run directory, unless NCCL_DEBUG_FILE in the "
      "environment names another file",
      "nccl.debug = \"info\"")));
  table.push_back(of_collective(
      text("nccl.debug_subsystems", "NCCL_DEBUG_SUBSYS",
           "Parts of NCCL that log: INIT COLL P2P SHM NET GRAPH TUNING ENV ALLOC and others, with "
           "commas; ^ before them: all but these",
           "nccl.debug_subsystems = \"INIT,TUNING\"")));
}

/// Besides the variables, which are found by themselves.
std::vector<std::pair<std::string, std::vector<std::string>>> other_names() {
  return {{"nccl.algo", {"nccl.algorithm"}},
          {"nccl.proto", {"nccl.protocol"}},
          {"nccl.rules", {"nccl.rule", "nccl.tuning", "nccl.tuner"}},
          {"nccl.min_ctas", {"NCCL_MIN_NCHANNELS", "nccl.min_channels"}},
          {"nccl.max_ctas", {"NCCL_MAX_NCHANNELS", "nccl.max_channels", "nccl.channels"}},
          {"nccl.net", {"nccl.network", "nccl.net_name"}},
          {"nccl.nvls_ctas", {"nccl.nvls_channels"}},
          {"nccl.buffer_bytes", {"nccl.buffer_size", "nccl.buffer"}},
          {"nccl.socket_interface", {"nccl.interface", "nccl.ifname"}},
          {"nccl.ib_adapter", {"nccl.hca", "nccl.adapter"}},
          {"nccl.p2p", {"nccl.peer_to_peer"}}};
}

}  // namespace

std::vector<SettingSpec> nccl_settings() {
  std::vector<SettingSpec> table;
  add_choice_of_algorithm(table);
  add_paths(table);
  add_network(table);
  add_log(table);
  for (const auto& [name, aliases] : other_names())
    for (auto& spec : table)
      if (spec.name == name) spec.aliases = aliases;
  return table;
}

std::vector<Constraint> nccl_constraints() {
  constexpr std::int64_t kMostSockets = 64;  // MAX_SOCKETS of NCCL
  return {{Constraint::Kind::at_most_where_set, "nccl.min_ctas", "nccl.max_ctas",
           "no number of channels is in between"},
          {Constraint::Kind::product_at_most, "nccl.socket_threads", "nccl.sockets_per_thread",
           "NCCL has no more sockets for a connection", kMostSockets},
          {Constraint::Kind::channels_at_most, "nccl.rules", "nccl.min_ctas",
           "every communicator has so many; set that first, or in the same order"}};
}

std::vector<Hint> nccl_hints() {
  const std::string others = "is not NCCL's but of PyTorch's process group, which footplate doesn't use; ";
  const std::string file =
      "names a file or a library that every rank would open; set it in the environment of footplate run, a "
      "console can't";
  const std::string deadline =
      "is no variable that NCCL reads; the deadline of a collective is comm.timeout_s, of one in an "
      "evaluation comm.eval_timeout_s, live";
  return {
      {"NCCL_TIMEOUT", deadline, true},
      {"NCCL_TIMEOUT_MS", deadline, true},
      {"NCCL_BLOCKING_WAIT", others + "nothing blocks here: comm.timeout_s is looked at by a watchdog", true},
      {"TORCH_NCCL_BLOCKING_WAIT", others + "nothing blocks here: comm.timeout_s is looked at by a watchdog",
       true},
      {"NCCL_ASYNC_ERROR_HANDLING", others + "what follows when a rank is lost is comm.on_loss", true},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", others + "what follows when a rank is lost is comm.on_loss", true},
      {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
       others + "a rank that is silent for too long is killed after comm.hard_limit_s", true},
      {"NCCL_DESYNC_DEBUG", others + "ranks in different collectives are named by themselves", true},
      {"TORCH_NCCL_*", others + "see comm.timeout_s, comm.hard_limit_s, comm.on_loss, and comm.report()",
       true},
      {"NCCL_*_PLUGIN", file},
      {"NCCL_PLUGIN_*", file},
      {"NCCL_*_FILE", file},
      {"NCCL_*_PATH", file},
      {"NCCL_CTA_POLICY",
       "would change nothing here: \"efficiency\" is for runs without a tuner, \"zero\" for memory that is "
       "registered with NCCL; nccl.max_ctas limits what collectives take of a device"},
      {"NCCL_*",
       "is no setting here (nccl.show() lists those that are); in the environment of footplate run it "
       "reaches NCCL as it is"},
      {"NCCL_COMM_ID", "is the address that ranks meet at; footplate makes one itself, over MPI"}};
}

}  // namespace footplate
