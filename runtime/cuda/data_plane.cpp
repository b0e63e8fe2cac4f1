#include "runtime/cuda/data_plane.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "protocol/host_name.h"
#include "run_files/failed_devices.h"
#include "run_files/run_file.h"
#include "runtime/base/library_variables.h"
#include "runtime/comm/agree.h"
#include "runtime/cuda/tuner_plugin.h"

namespace footplate {
namespace {

constexpr const char* kLibrary = "FOOTPLATE_NCCL";

/// Found among what LibTorch has loaded: exactly one may be in a process.
constexpr const char* kLibraryOfTorch = "libnccl.so.2";

/// Less than what a new world waits for the communication thread (MpiWorld::rebuild).
constexpr std::chrono::milliseconds kAbort{20'000};

NcclCommunicators::Bounds bounds_of(const Settings& settings) {
  NcclCommunicators::Bounds bounds;
  bounds.connect = std::chrono::milliseconds(std::llround(settings.number("comm.init_timeout_s") * 1000));
  bounds.launch = bounds.connect;
  bounds.abort = kAbort;
  return bounds;
}

/// Another tuner than footplate's own (set_library_variables), as the user wants it; empty: ours.
std::string other_tuner() {
  const char* named = std::getenv(kTunerPlugin);
  return named == nullptr || std::string_view(named) == kOwnPlugin ? "" : named;
}

MeasuredCollective measured_of(const CollectiveRow& row) {
  return {.collective = row.collective,
          .algorithm = row.algorithm,
          .protocol = row.protocol,
          .channels = row.channels,
          .ranks = row.ranks,
          .at_least = static_cast<std::int64_t>(row.at_least),
          .count = static_cast<std::int64_t>(row.count),
          .bytes = static_cast<std::int64_t>(row.bytes),
          .mean_us = row.mean_us(),
          .least_us = static_cast<double>(row.least_ns) / 1e3,
          .most_us = static_cast<double>(row.most_ns) / 1e3,
          .bus_gb_per_s = row.bus_gb_per_s()};
}

}  // namespace

DataPlane::DataPlane(std::string path, const NcclLibrary& library, Communicator& host, CudaDevice* device)
    : path_(std::move(path)),
      library_(library),
      host_(host),
      tuning_(std::make_unique<Tuning>()),
      profile_(std::make_unique<CollectiveProfile>()),
      host_stream_(device == nullptr ? std::make_unique<HostStream>() : nullptr),
      stream_(device == nullptr ? static_cast<NcclStream&>(*host_stream_) : device->nccl_stream()) {
  bind_tuner(tuning_.get());
  bind_profiler(profile_.get());
}

Result<std::unique_ptr<DataPlane>> DataPlane::open(const Settings& settings, MpiSession& session,
                                                   MpiCommunicator& host, CudaDevice* device) {
  const char* path = device != nullptr ? kLibraryOfTorch : std::getenv(kLibrary);
  if (path == nullptr || *path == '\0') return nullptr;
  const auto library = NcclLibrary::open(path);
  if (!library) return tl::unexpected(library.error());
  std::unique_ptr<DataPlane> plane(new DataPlane(path, *library, host, device));
  if (auto can = plane->check(settings); !can)
    return tl::unexpected(Error{ErrorKind::usage, can.error().message});
  plane->communicator_ = std::make_unique<NcclCommunicator>(
      NcclCommunicator::Parts{
          .library = plane->library_,
          .stream = plane->stream_,
          .host = host,
          .queue = host.queue(),
          .bounds = bounds_of(settings),
          .enter_thread =
              device != nullptr ? std::function<void()>([device] { device->enter_thread(); }) : nullptr,
          .rule_for = [tuning = plane->tuning_.get()](
                          std::size_t bytes) { return tuning->rule_for(NcclCollective::all_reduce, bytes); },
          .find_together = [&session] { session.give_up(); }},
      communicator_config(settings));
  return plane;
}

DataPlane::~DataPlane() {
  if (finish()) {
    communicator_.reset();
    bind_tuner(nullptr);
    bind_profiler(nullptr);
    return;
  }
  // Something of it is in a call that hasn't returned; the process is about to end.
  static_cast<void>(communicator_.release());
  static_cast<void>(host_stream_.release());
  static_cast<void>(tuning_.release());
  static_cast<void>(profile_.release());
}

Result<void> DataPlane::check(const Settings& after) const {
  const auto rules = tuning_rules(after);
  if (rules.empty()) return {};
  if (const std::string other = other_tuner(); !other.empty())
    return fail(ErrorKind::refused,
                fmt::format("nccl.rules, nccl.algo and nccl.proto would change nothing: {}={} in the "
                            "environment of footplate run names another tuner than footplate's; unset it",
                            kTunerPlugin, other));
  if (rules.size() > Tuning::kMostRules)
    return fail(
        ErrorKind::refused,
        fmt::format("nccl.rules: {} rules, with those of nccl.algo and nccl.proto; allowed: at most {}",
                    rules.size(), Tuning::kMostRules));
  return {};
}

bool DataPlane::tune(const Settings& now) {
  if (set_log_variables(now) && library_.reset_debug != nullptr) library_.reset_debug();
  communicator_->set_pieces_together(now.integer("nccl.coalesce"));
  const auto rules = tuning_rules(now);
  const std::uint32_t version = version_of(rules);
  tuning_->set_most_channels(static_cast<int>(now.integer("nccl.min_ctas")));
  if (std::exchange(asked_, version) == version) return false;
  // Refused only while a collective is being launched by the rules before last: for less than a microsecond.
  while (!tuning_->propose(version, rules)) std::this_thread::yield();
  restart_digests(*tuning_);
  difference_told_ = false;
  left_ = 0;
  return tuning_->switch_to(version);
}

void DataPlane::leave_rules() {
  leave_to_nccl();
  asked_ = 0;
}

Result<void> DataPlane::take_rules(const Settings& now) {
  const auto left = from_all_ranks(host_, left_, "rules left to NCCL");
  if (!left) return tl::unexpected(left.error());
  restart_digests(*tuning_);
  tune(now);
  if (asked_ == 0 || std::ranges::find(*left, asked_) == left->end()) return {};
  leave_to_nccl();
  left_ = asked_;
  difference_told_ = true;
  return {};
}

void DataPlane::leave_to_nccl() {
  restart_digests(*tuning_);
  while (!tuning_->propose(0, {})) std::this_thread::yield();
  tuning_->switch_to(0);
}

Result<std::string> DataPlane::compare() {
  constexpr std::size_t kWords = 4;
  std::array<std::int64_t, kWords> mine{};
  if (const auto digests = tuner_digests(*tuning_); !digests.empty()) {
    const TunerDigest& newest = digests.back().digest;
    mine = {static_cast<std::int64_t>(newest.version), static_cast<std::int64_t>(newest.collectives),
            static_cast<std::int64_t>(newest.hash)};
  }
  const auto unmet = tuning_->take_unmet();
  mine[3] = unmet ? 1 : 0;
  std::vector<std::int64_t> all(kWords * static_cast<std::size_t>(host_.world_size()));
  auto gathered = host_
                      .all_gather({mine.data(), kWords, DataType::int64},
                                  {all.data(), static_cast<std::int64_t>(all.size()), DataType::int64},
                                  "digests of NCCL's tuner")
                      ->wait();
  if (!gathered) return tl::unexpected(gathered.error());
  std::vector<TunerDigest> digests;
  for (std::size_t at = 0; at < all.size(); at += kWords)
    digests.push_back({static_cast<std::uint32_t>(all[at]), static_cast<std::uint64_t>(all[at + 1]),
                       static_cast<std::uint64_t>(all[at + 2])});
  if (auto alike = compare_digests(digests); !alike) {
    if (std::exchange(difference_told_, true)) return std::string();
    if (tuning_->version() == 0)
      return alike.error().message + "; that is NCCL's own choice there, and may hang";
    leave_to_nccl();
    left_ = asked_;
    return alike.error().message +
           "; NCCL chooses by itself from here on, until nccl.rules, nccl.algo or nccl.proto change";
  }
  if (!unmet) return std::string();
  return fmt::format(
      "NCCL can't do {}s of {} bytes here as nccl.rules, nccl.algo or nccl.proto ask: it took {}, {}",
      to_string(unmet->collective), unmet->bytes, to_string(unmet->algorithm), to_string(unmet->protocol));
}

NcclMeasurement DataPlane::measured() const {
  NcclMeasurement found;
  for (const CollectiveRow& row : profile_->rows()) found.collectives.push_back(measured_of(row));
  found.unfinished = static_cast<std::int64_t>(profile_->unfinished());
  found.left_out = static_cast<std::int64_t>(profile_->left_out());
  return found;
}

std::string DataPlane::description() const {
  return "gradients go over NCCL " + version() + " (" + path_ + ")";
}

std::string DataPlane::version() const {
  return nccl_version_text(library_.version);
}

/// Ranks of the run that live on this host.
int ranks_here(const std::filesystem::path& run_directory) {
  const auto run = read_run_file(run_directory);
  if (!run) return 0;
  return static_cast<int>(std::ranges::count(run->ranks, host_name(), &RankPlace::host));
}

Result<Compute> Compute::open(const Settings& settings, MpiSession& session, MpiCommunicator& host,
                              const std::filesystem::path& run_directory) {
  Compute compute;
  const std::string& wanted = settings.string("run.device");
  if (wanted == "cuda" || (wanted == "auto" && visible_cuda_devices() > 0)) {
    CudaOptions options{.index = session.local_rank(),
                        .deterministic = settings.boolean("run.deterministic"),
                        .left_out = ids_of(read_failed_devices(run_directory))};
    if (session.host() != MPI_COMM_NULL) {
      options.index = -1;
      options.taken = ranks_here(run_directory);
    }
    auto device = open_cuda(options);
    if (!device) return tl::unexpected(device.error());
    compute.device = *std::move(device);
  }
  auto plane = DataPlane::open(settings, session, host, compute.device.get());
  if (!plane) return tl::unexpected(plane.error());
  compute.plane = *std::move(plane);
  return compute;
}

Result<void> Compute::is_alike(Communicator& host) const {
  const std::int64_t mine = device != nullptr ? 1 : 0;
  std::vector<std::int64_t> all(static_cast<std::size_t>(host.world_size()));
  auto told = host.all_gather({const_cast<std::int64_t*>(&mine), 1, DataType::int64},
                              {all.data(), static_cast<std::int64_t>(all.size()), DataType::int64}, "devices")
                  ->wait();
  if (!told) return told;
  const auto other =
      std::find_if(all.begin(), all.end(), [&](std::int64_t one) { return one != all.front(); });
  if (other == all.end()) return {};
  const auto what = [](std::int64_t has) { return has != 0 ? "a device" : "the processors"; };
  return fail(
      ErrorKind::usage,
      fmt::format("rank 0 has {} to train on and rank {} {}: set run.device = \"cpu\" or \"cuda\" for all",
                  what(all.front()), other - all.begin(), what(*other)));
}

Json Compute::nccl_version() const {
  return plane ? Json(plane->version()) : Json();
}

void Compute::reset() {
  if (plane && !plane->finish()) {
    static_cast<void>(plane.release());
    static_cast<void>(device.release());
    return;
  }
  plane.reset();
  device.reset();
}

}  // namespace footplate
