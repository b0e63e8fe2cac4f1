#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "runtime/comm/mpi/mpi_communicator.h"
#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/cuda/collective_profile.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/host_stream.h"
#include "runtime/cuda/nccl_communicator.h"
#include "runtime/cuda/nccl_guard.h"
#include "runtime/cuda/tuning.h"

namespace footplate {

/// Where the gradients of this rank are reduced, if not over MPI: NCCL's library, the stream it works on, and
/// the communicator over both.
///
/// On a device it is the library that LibTorch is linked with, and the stream is the device's. Without one it
/// is a library that works in host memory, which FOOTPLATE_NCCL names: the tests' stand-in.
class DataPlane final : public NcclSteering {
 public:
  /// Null without `device` and FOOTPLATE_NCCL. `settings` tell the bounds, and what communicators are made
  /// with; the others outlive it. Errors (usage): the library isn't there, or can't be used; what the
  /// settings ask of it can't be.
  static Result<std::unique_ptr<DataPlane>> open(const Settings& settings, MpiSession& session,
                                                 MpiCommunicator& host, CudaDevice* device);
  /// Ends in order with the other ranks, within a bound. What hangs is left as it is.
  ~DataPlane() override;
  /// Likewise, before. False: something of it is in a call that hasn't returned, and still uses the device.
  bool finish() { return communicator_ == nullptr || communicator_->finish(); }

  /// Collective: communicators among the ranks of now. Errors, the same on all: NcclCommunicator::connect.
  Result<void> connect() { return communicator_->connect(); }
  Communicator& communicator() { return *communicator_; }

  Result<void> check(const Settings& after) const override;
  Result<double> renew(const Settings& after) override {
    return communicator_->renew(communicator_config(after));
  }
  bool tune(const Settings& now) override;
  Result<std::string> compare() override;
  void leave_rules() override;
  Result<void> take_rules(const Settings& now) override;
  void measure(std::int64_t first, std::int64_t steps) override { profile_->measure(first, steps); }
  void at_step(std::int64_t step) override { profile_->at_step(step); }
  NcclMeasurement measured() const override;

  /// "gradients go over NCCL 2.28.9 (/path/to/libnccl.so)".
  std::string description() const;
  /// "2.28.9": NCCL's.
  std::string version() const;

 private:
  DataPlane(std::string path, const NcclLibrary& library, Communicator& host, CudaDevice* device);
  /// On all ranks between the same two collectives.
  void leave_to_nccl();

  const std::string path_;
  const NcclLibrary library_;
  Communicator& host_;
  bool difference_told_ = false;  ///< of the rules in force
  std::uint32_t asked_ = 0;       ///< the version of the rules that the settings ask for; training thread
  std::uint32_t left_ = 0;        ///< the version that is left to NCCL after a difference; 0: none
  /// What NCCL calls: as long-lived as its communicators.
  std::unique_ptr<Tuning> tuning_;
  std::unique_ptr<CollectiveProfile> profile_;
  std::unique_ptr<HostStream> host_stream_;  ///< null on a device
  NcclStream& stream_;
  std::unique_ptr<NcclCommunicator> communicator_;
};

/// What a rank trains on and reduces over; both null where that is the processors and MPI.
struct Compute {
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<DataPlane> plane;

  /// What run.device asks for; a process that joins takes the device with the most free memory. None that has
  /// failed in this job (run_files/failed_devices.h). Errors
  /// (usage): open_cuda, DataPlane::open.
  static Result<Compute> open(const Settings& settings, MpiSession& session, MpiCommunicator& host,
                              const std::filesystem::path& run_directory);
  /// Collective. Error (usage), the same on all: some train on a device and some don't.
  Result<void> is_alike(Communicator& host) const;
  /// "2.28.9": that of the plane; null where gradients go over MPI.
  Json nccl_version() const;
  /// Before the process ends. What still hangs stays as it is, and so does the device that it works on.
  void reset();
};

}  // namespace footplate
