#include "runtime/data_plane.h"

#include <cmath>
#include <cstdlib>

namespace footplate {
namespace {

constexpr const char* kLibrary = "FOOTPLATE_NCCL";

/// Less than what a new world waits for the communication thread (MpiWorld::rebuild).
constexpr std::chrono::milliseconds kAbort{20'000};

NcclCommunicators::Bounds bounds_of(const Settings& settings) {
  NcclCommunicators::Bounds bounds;
  bounds.connect = std::chrono::milliseconds(std::llround(settings.number("comm.init_timeout_s") * 1000));
  bounds.launch = bounds.connect;
  bounds.abort = kAbort;
  return bounds;
}

}  // namespace

DataPlane::DataPlane(std::string path, const NcclLibrary& library)
    : path_(std::move(path)), library_(library), stream_(std::make_unique<HostStream>()) {}

Result<std::unique_ptr<DataPlane>> DataPlane::open(const Settings& settings, MpiSession& session,
                                                   MpiCommunicator& host) {
  const char* path = std::getenv(kLibrary);
  if (path == nullptr || *path == '\0') return nullptr;
  const auto library = NcclLibrary::open(path);
  if (!library) return tl::unexpected(library.error());
  std::unique_ptr<DataPlane> plane(new DataPlane(path, *library));
  plane->communicator_ = std::make_unique<NcclCommunicator>(
      NcclCommunicator::Parts{.library = plane->library_,
                              .stream = *plane->stream_,
                              .host = host,
                              .queue = host.queue(),
                              .bounds = bounds_of(settings),
                              .find_together = [&session] { session.give_up(); }},
      nccl_config(settings));
  return plane;
}

DataPlane::~DataPlane() {
  if (communicator_ == nullptr || communicator_->finish()) return;
  // Something of it is in a call that hasn't returned; the process is about to end.
  static_cast<void>(communicator_.release());
  static_cast<void>(stream_.release());
}

std::string DataPlane::description() const {
  return "gradients go over NCCL " + nccl_version_text(library_.version) + " (" + path_ + ")";
}

}  // namespace footplate
