#include "protocol/nccl/tuning_rules.h"
#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

constexpr double kLongestNet = 63;  ///< CommunicatorConfig::kLongestName

/// What of all-reduces alone is asked for leaves the other collectives as they are: broadcasts, say, know no
/// tree. Named one by one because what isn't named would be off (NCCL 2.31).
std::string for_all_reduce(const std::string& algorithm) {
  return "Tree,Ring,CollNetDirect,CollNetChain,NVLS,NVLSTree,PAT;allreduce:" + algorithm;
}

std::vector<SettingRow> algorithms() {
  return {
      {.name = "nccl.algo",
       .value = "auto",
       .variable = "NCCL_ALGO",
       .variable_values = {{"auto", ""},
                           {"ring", for_all_reduce("Ring")},
                           {"tree", for_all_reduce("Tree")},
                           {"collnet_direct", for_all_reduce("CollNetDirect")},
                           {"collnet_chain", for_all_reduce("CollNetChain")},
                           {"nvls", for_all_reduce("NVLS")},
                           {"nvls_tree", for_all_reduce("NVLSTree")}},
       .aliases = {"nccl.algorithm"},
       .help = "All-reduces of any size use this algorithm; nccl.rules tells sizes apart. Where NCCL "
               "can't use it here it does as it would have, and a warning says so",
       .example = "nccl.algo = \"ring\""},
      {.name = "nccl.proto",
       .value = "auto",
       .variable = "NCCL_PROTO",
       .variable_values = {{"auto", ""}, {"simple", "Simple"}, {"ll", "LL"}, {"no_ll128", "^LL128"}},
       .aliases = {"nccl.protocol"},
       .help = "All collectives use this protocol. LL128 can't be forced: where NCCL doesn't take it by "
               "itself it may corrupt data",
       .example = "nccl.proto = \"simple\""},
      {.name = "nccl.rules",
       .value = "",
       .syntax = kTuningRules,
       .aliases = {"nccl.rule", "nccl.tuning", "nccl.tuner"},
       .help = "NCCL does collectives by these rules, with ; between them; the first that fits counts. "
               "Words of a rule: sizes (..1MiB, 1MiB..64MiB, 64MiB..), an algorithm, a protocol, 4 "
               "channels, a collective other than all_reduce",
       .example = "nccl.rules = \"..1MiB tree ll; 64MiB.. ring simple\""},
      {.name = "nccl.coalesce",
       .value = 16,
       .unit = "pieces",
       .range = {.min = 1, .max = 1024},
       .aliases = {"nccl.group", "nccl.group_size", "nccl.aggregate", "coalesce"},
       .help = "NCCL gets this many pieces of a bucket (comm.chunk_elements) as one group, and launches "
               "them as one. 1 launches each by itself",
       .example = "nccl.coalesce = 4"},
  };
}

std::vector<SettingRow> channels() {
  return {
      {.name = "nccl.min_ctas",
       .value = 0,
       .range = {.min = 0, .max = 64},
       .variable = "NCCL_MIN_CTAS",
       .applies = Applies::comm,
       .aliases = {"NCCL_MIN_NCHANNELS", "nccl.min_channels"},
       .help = "A collective takes at least this many blocks of a device (channels). 0 = NCCL's choice",
       .example = "nccl.min_ctas = 4"},
      {.name = "nccl.max_ctas",
       .value = 0,
       .range = {.min = 0, .max = 64},
       .variable = "NCCL_MAX_CTAS",
       .applies = Applies::comm,
       .aliases = {"NCCL_MAX_NCHANNELS", "nccl.max_channels", "nccl.channels"},
       .help = "A collective takes at most this many blocks of a device (channels). Fewer leave more to "
               "computing. 0 = NCCL's choice",
       .example = "nccl.max_ctas = 8"},
      {.name = "nccl.cga_cluster_size",
       .value = -1,
       .range = {.min = -1, .max = 8},
       .variable = "NCCL_CGA_CLUSTER_SIZE",
       .applies = Applies::comm,
       .help = "A cluster has this many blocks, on devices that have clusters (Hopper and later). -1 = "
               "NCCL's choice",
       .example = "nccl.cga_cluster_size = 2"},
      {.name = "nccl.nvls_ctas",
       .value = 0,
       .range = {.min = 0, .max = 64},
       .variable = "NCCL_NVLS_NCHANNELS",
       .applies = Applies::comm,
       .aliases = {"nccl.nvls_channels"},
       .help = "A reduction in the NVSwitch takes this many blocks of a device (channels). 0 = NCCL's choice",
       .example = "nccl.nvls_ctas = 16"},
      {.name = "nccl.collnet",
       .value = "auto",
       .variable = "NCCL_COLLNET_ENABLE",
       .variable_values = {{"auto", ""}, {"on", "1"}, {"off", "0"}},
       .applies = Applies::comm,
       .help = "The switches of the network may do reductions (InfiniBand SHARP)",
       .example = "nccl.collnet = \"on\""},
      {.name = "nccl.buffer_bytes",
       .value = 0,
       .unit = "bytes",
       .range = {.min = 0, .max = 1 << 30},
       .variable = "NCCL_BUFFSIZE",
       .applies = Applies::restart,
       .aliases = {"nccl.buffer_size", "nccl.buffer"},
       .help = "The buffer between two ranks has this size, for each channel. Larger ones cost device "
               "memory. 0 = NCCL's choice",
       .example = "nccl.buffer_bytes = \"8MiB\""},
  };
}

std::vector<SettingRow> network() {
  return {
      {.name = "nccl.preset",
       .value = "none",
       .choices = {"none", "infiniband", "ethernet", "pcie"},
       .applies = Applies::restart,
       .help = "Each host sets at the start what is usual for this network and nobody has set, with the "
               "interface of its own routing table. nccl.preset(NAME) sets it as settings, as this host has "
               "it",
       .example = "nccl.preset = \"ethernet\""},
  };
}

std::vector<SettingRow> paths() {
  return {
      {.name = "nccl.p2p",
       .value = "auto",
       .variable = "NCCL_P2P_DISABLE",
       .variable_values = {{"auto", "0"}, {"off", "1"}},
       .applies = Applies::restart,
       .aliases = {"nccl.peer_to_peer"},
       .help = "Devices of a host talk peer-to-peer, over NVLink or PCI. off is slow and for finding faults",
       .example = "nccl.p2p = \"off\""},
      {.name = "nccl.p2p_level",
       .value = "auto",
       .variable = "NCCL_P2P_LEVEL",
       .variable_values = {{"auto", ""},
                           {"loc", "LOC"},
                           {"nvl", "NVL"},
                           {"pix", "PIX"},
                           {"pxb", "PXB"},
                           {"phb", "PHB"},
                           {"sys", "SYS"}},
       .applies = Applies::restart,
       .help = "Devices talk peer-to-peer up to this distance. loc: never; nvl: over NVLink; pix: over "
               "one PCI switch; pxb: over several; phb: over the processor; sys: also between processors",
       .example = "nccl.p2p_level = \"phb\""},
      {.name = "nccl.shared_memory",
       .value = "auto",
       .variable = "NCCL_SHM_DISABLE",
       .variable_values = {{"auto", "0"}, {"off", "1"}},
       .applies = Applies::restart,
       .help = "Devices of a host that have no peer-to-peer talk over host memory. off: over the network",
       .example = "nccl.shared_memory = \"off\""},
      {.name = "nccl.nvls",
       .value = "auto",
       .variable = "NCCL_NVLS_ENABLE",
       .variable_values = {{"auto", "2"}, {"on", "1"}, {"off", "0"}},
       .applies = Applies::restart,
       .help = "The NVSwitch may do reductions (NVLink SHARP). auto: where it can. on: the start fails "
               "where it can't",
       .example = "nccl.nvls = \"off\""},
      {.name = "nccl.gpu_direct_level",
       .value = "auto",
       .variable = "NCCL_NET_GDR_LEVEL",
       .variable_values =
           {{"auto", ""}, {"loc", "LOC"}, {"pix", "PIX"}, {"pxb", "PXB"}, {"phb", "PHB"}, {"sys", "SYS"}},
       .applies = Applies::restart,
       .help = "A network adapter reads and writes a device's memory (GPUDirect RDMA) up to this "
               "distance. loc: never",
       .example = "nccl.gpu_direct_level = \"phb\""},
      {.name = "nccl.cross_nic",
       .value = "auto",
       .variable = "NCCL_CROSS_NIC",
       .variable_values = {{"auto", "2"}, {"on", "1"}, {"off", "0"}},
       .applies = Applies::restart,
       .help = "A ring may leave a host by one adapter and enter the next by another",
       .example = "nccl.cross_nic = \"off\""},
  };
}

std::vector<SettingRow> hosts() {
  return {
      {.name = "nccl.net",
       .value = "",
       .unit = "characters",
       .range = {.min = 0, .max = kLongestNet},
       .variable = "NCCL_NET",
       .applies = Applies::comm,
       .aliases = {"nccl.network", "nccl.net_name"},
       .help = "Hosts talk over the network of this name: IB, Socket, or that of the plugin that NCCL "
               "has loaded (its log names it: nccl.debug). A network that isn't there is refused, at a "
               "start and with new communicators. Empty = NCCL's choice",
       .example = "nccl.net = \"Socket\""},
      {.name = "nccl.socket_interface",
       .value = "",
       .variable = "NCCL_SOCKET_IFNAME",
       .applies = Applies::restart,
       .aliases = {"nccl.interface", "nccl.ifname"},
       .help = "Ranks meet over this interface, and talk over it where there is no InfiniBand. =eth0: "
               "exactly this one; eth: all that begin with it; ^docker: all but these. Empty = NCCL's choice",
       .example = "nccl.socket_interface = \"=eth0\""},
      {.name = "nccl.socket_family",
       .value = "auto",
       .variable = "NCCL_SOCKET_FAMILY",
       .variable_values = {{"auto", ""}, {"ipv4", "AF_INET"}, {"ipv6", "AF_INET6"}},
       .applies = Applies::restart,
       .help = "Connections over TCP use addresses of this family",
       .example = "nccl.socket_family = \"ipv4\""},
      {.name = "nccl.socket_threads",
       .value = 0,
       .unit = "threads",
       .range = {.min = 0, .max = 16},
       .variable = "NCCL_SOCKET_NTHREADS",
       .applies = Applies::restart,
       .help = "Each connection over TCP has this many threads. 0 = NCCL's choice",
       .example = "nccl.socket_threads = 4"},
      {.name = "nccl.sockets_per_thread",
       .value = 0,
       .unit = "sockets",
       .range = {.min = 0, .max = 64},
       .variable = "NCCL_NSOCKS_PERTHREAD",
       .applies = Applies::restart,
       .help = "Each thread of a connection over TCP has this many sockets. Threads times sockets is at "
               "most 64. 0 = NCCL's choice",
       .example = "nccl.sockets_per_thread = 4"},
      {.name = "nccl.ib",
       .value = "auto",
       .variable = "NCCL_IB_DISABLE",
       .variable_values = {{"auto", "0"}, {"off", "1"}},
       .applies = Applies::restart,
       .help = "Hosts talk over InfiniBand and RoCE. off: over TCP",
       .example = "nccl.ib = \"off\""},
  };
}

std::vector<SettingRow> infiniband() {
  return {
      {.name = "nccl.ib_adapter",
       .value = "",
       .variable = "NCCL_IB_HCA",
       .applies = Applies::restart,
       .aliases = {"nccl.hca", "nccl.adapter"},
       .help = "InfiniBand and RoCE use these adapters. =mlx5_0,mlx5_1: exactly these; mlx5: all "
               "that begin with it; ^mlx5_2: all but these. Empty = NCCL's choice",
       .example = "nccl.ib_adapter = \"=mlx5_0,mlx5_1\""},
      {.name = "nccl.ib_timeout",
       .value = 0,
       .range = {.min = 0, .max = 22},
       .variable = "NCCL_IB_TIMEOUT",
       .applies = Applies::restart,
       .help = "An adapter's time-out is 4.096 us * 2^n for this n: 20 is 4.3 s, 22 is 17 s. 0 = "
               "NCCL's choice",
       .example = "nccl.ib_timeout = 22"},
      {.name = "nccl.ib_retries",
       .value = 0,
       .range = {.min = 0, .max = 7},
       .variable = "NCCL_IB_RETRY_CNT",
       .applies = Applies::restart,
       .help = "An adapter sends again this often before it gives up. 0 = NCCL's choice",
       .example = "nccl.ib_retries = 7"},
      {.name = "nccl.ib_gid_index",
       .value = -1,
       .range = {.min = -1, .max = 255},
       .variable = "NCCL_IB_GID_INDEX",
       .applies = Applies::restart,
       .help = "RoCE uses the adapter's address of this index. -1 = NCCL's choice",
       .example = "nccl.ib_gid_index = 3"},
      {.name = "nccl.ib_service_level",
       .value = -1,
       .range = {.min = -1, .max = 15},
       .variable = "NCCL_IB_SL",
       .applies = Applies::restart,
       .help = "InfiniBand uses this service level. -1 = NCCL's choice",
       .example = "nccl.ib_service_level = 1"},
      {.name = "nccl.ib_traffic_class",
       .value = -1,
       .range = {.min = -1, .max = 255},
       .variable = "NCCL_IB_TC",
       .applies = Applies::comm,
       .help = "InfiniBand and RoCE use this traffic class. -1 = NCCL's choice",
       .example = "nccl.ib_traffic_class = 106"},
      {.name = "nccl.ib_queue_pairs",
       .value = 0,
       .range = {.min = 0, .max = 128},
       .variable = "NCCL_IB_QPS_PER_CONNECTION",
       .applies = Applies::restart,
       .help = "Each connection of two ranks has this many queue pairs. 0 = NCCL's choice",
       .example = "nccl.ib_queue_pairs = 4"},
  };
}

std::vector<SettingRow> log() {
  return {
      {.name = "nccl.debug",
       .value = "auto",
       .variable = "NCCL_DEBUG",
       .variable_values =
           {{"auto", ""}, {"version", "VERSION"}, {"warn", "WARN"}, {"info", "INFO"}, {"trace", "TRACE"}},
       .help = "NCCL logs this much to log/nccl-HOST-PID.log of the run directory, unless "
               "NCCL_DEBUG_FILE in the environment names another file",
       .example = "nccl.debug = \"info\""},
      {.name = "nccl.debug_subsystems",
       .value = "",
       .variable = "NCCL_DEBUG_SUBSYS",
       .help = "These parts of NCCL log, with commas between them: INIT COLL P2P SHM NET GRAPH TUNING "
               "ENV ALLOC and others. ^ before them: all but these. Empty = NCCL's choice",
       .example = "nccl.debug_subsystems = \"INIT,TUNING\""},
  };
}

}  // namespace

void add_nccl_settings(std::vector<SettingSpec>& table) {
  add(table, algorithms());
  add(table, channels());
  add(table, network());
  add(table, paths());
  add(table, hosts());
  add(table, infiniband());
  add(table, log());
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
