#include "runtime/cuda/nccl_communicators.h"

#include <algorithm>
#include <utility>

namespace footplate {
namespace {

using nccl_abi::kInProgress;
using nccl_abi::kSuccess;

std::string seconds_text(std::chrono::milliseconds time) {
  return shortest(static_cast<double>(time.count()) / 1000) + " s";
}

}  // namespace

CommunicatorConfig communicator_config(const Settings& settings) {
  CommunicatorConfig config;
  config.blocking = 0;
  const auto set = [&](int& field, const char* name, std::int64_t automatic) {
    if (const std::int64_t value = settings.integer(name); value != automatic)
      field = static_cast<int>(value);
  };
  set(config.min_ctas, "nccl.min_ctas", 0);
  set(config.max_ctas, "nccl.max_ctas", 0);
  set(config.cga_cluster_size, "nccl.cga_cluster_size", -1);
  set(config.traffic_class, "nccl.ib_traffic_class", -1);
  set(config.nvls_ctas, "nccl.nvls_ctas", 0);
  if (const std::string& collnet = settings.string("nccl.collnet"); collnet != "auto")
    config.collnet = collnet == "on" ? 1 : 0;
  settings.string("nccl.net").copy(config.network.data(), CommunicatorConfig::kLongestName);
  return config;
}

NcclCommunicators::NcclCommunicators(const NcclLibrary& library, Bounds bounds,
                                     std::function<bool()> given_up, std::function<void()> enter_thread)
    : library_(library),
      bounds_(bounds),
      given_up_(std::move(given_up)),
      enter_thread_(std::move(enter_thread)),
      helper_("nccl") {}

NcclCommunicators::~NcclCommunicators() {
  static_cast<void>(abort());
}

/// Runs on the helper. What it writes to is shared with it: it may end when nobody waits any more.
Result<NcclCommunicators::Status> NcclCommunicators::bounded(const char* what,
                                                             std::chrono::milliseconds bound,
                                                             std::function<Status()> call) {
  if (helper_.stuck())
    return fail(ErrorKind::failed,
                std::string("NCCL: ") + what +
                    " isn't tried: an earlier call has never returned, this rank has to end");
  const auto status = std::make_shared<Status>(nccl_abi::kInternalError);
  const bool returned = helper_.run(
      [status, call = std::move(call), enter = enter_thread_] {
        if (enter) enter();
        *status = call();
      },
      SteadyClock::now() + bound);
  if (!returned)
    return fail(ErrorKind::timed_out, std::string("NCCL: ") + what + " hasn't returned within " +
                                          seconds_text(bound) + "; this rank has to end");
  return *status;
}

Error NcclCommunicators::nccl_error(const std::string& what, Status status, Comm comm) const {
  const char* kind = library_.get_error_string(status);
  const char* last = library_.get_last_error(comm);
  std::string text = "NCCL: " + what + " failed: " + (kind != nullptr ? kind : std::to_string(status));
  if (last != nullptr && *last != '\0') text += " (" + excerpt(last) + ")";
  return {ErrorKind::failed, text + "; nccl.debug = \"info\" logs more at the next start"};
}

Result<nccl_abi::UniqueId> NcclCommunicators::new_id() const {
  nccl_abi::UniqueId id{};
  if (const Status status = library_.get_unique_id(&id); status != kSuccess)
    return tl::unexpected(nccl_error("a new id", status, nullptr));
  return id;
}

Result<void> NcclCommunicators::connect(const std::vector<Group>& groups, const CommunicatorConfig& config) {
  if (connected()) return fail(ErrorKind::failed, "NCCL: connect() while connected: abort() comes first");
  const auto until = SteadyClock::now() + bounds_.connect;
  struct Making {
    std::vector<Group> groups;
    std::vector<Comm> comms;
    CommunicatorConfig config;  ///< holds what NCCL is pointed to
  };
  const auto making = std::make_shared<Making>(Making{groups, std::vector<Comm>(groups.size()), config});
  making->config.blocking = 0;  // else it couldn't be given up
  making->config.name = "footplate";
  making->config.net_name = making->config.network.front() != '\0' ? making->config.network.data() : nullptr;
  auto status = bounded("making communicators", bounds_.connect, [making, library = library_] {
    Status result = library.group_start();
    for (std::size_t i = 0; i < making->groups.size() && (result == kSuccess || result == kInProgress); ++i) {
      const Group& group = making->groups[i];
      result =
          library.init_rank_config(&making->comms[i], group.ranks, group.id, group.rank, &making->config);
    }
    const Status closed = library.group_end();  // also after a failure: the group is the thread's
    return result == kSuccess || result == kInProgress ? closed : result;
  });
  if (!status) return tl::unexpected(status.error());
  names_.clear();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (making->comms[i] == nullptr) continue;  // it was never begun
    comms_.push_back(making->comms[i]);
    names_.push_back(groups[i].name);
  }
  Result<void> made;
  if (*status != kSuccess && *status != kInProgress)
    made = tl::unexpected(nccl_error("making communicators", *status, nullptr));
  else
    made = await(comms_, "making communicators", until);
  if (!made) {
    static_cast<void>(abort());  // the first error counts
    return made;
  }
  ++generation_;
  error_ = std::nullopt;
  return {};
}

/// Until none of them has anything in progress. Asking returns at once, so that no helper is needed; NCCL has
/// nothing to wait for.
Result<void> NcclCommunicators::await(const std::vector<Comm>& comms, const char* what,
                                      SteadyClock::time_point until) {
  PollPause poll_pause;
  for (std::size_t i = 0; i < comms.size(); ++i)
    for (;;) {
      Status state = kInProgress;
      const Status asked = library_.get_async_error(comms[i], &state);
      if (asked != kSuccess) state = asked;
      if (state == kSuccess) break;
      if (state != kInProgress)
        return tl::unexpected(nccl_error(std::string(what) + " (" + names_[i] + ")", state, comms[i]));
      if (given_up_ && given_up_())
        return fail(ErrorKind::lost, std::string("NCCL: ") + what + " (" + names_[i] +
                                         ") was given up: the ranks find together anew");
      if (SteadyClock::now() >= until)
        return fail(ErrorKind::timed_out,
                    std::string("NCCL: ") + what + " (" + names_[i] +
                        ") took too long: another rank hasn't come, or the network between them fails; "
                        "footplate status tells where each rank is");
      poll_pause.pause();
    }
  return {};
}

Result<void> NcclCommunicators::abort() {
  return end("abort", /*in_order=*/false);
}

Result<void> NcclCommunicators::finish() {
  if (!connected()) return {};
  auto finalized = bounded("finalize", bounds_.abort, [comms = comms_, library = library_] {
    for (const Comm comm : comms)
      if (const Status status = library.finalize(comm); status != kSuccess && status != kInProgress)
        return status;
    return kSuccess;
  });
  if (!finalized) return tl::unexpected(finalized.error());
  if (*finalized != kSuccess || !await(comms_, "finalize", SteadyClock::now() + bounds_.abort))
    return abort();
  return end("destroy", /*in_order=*/true);
}

Result<void> NcclCommunicators::end(const char* what, bool in_order) {
  const auto comms = std::exchange(comms_, {});
  if (comms.empty()) return {};
  const auto status = bounded(what, bounds_.abort, [comms, in_order, library = library_] {
    Status first = library.group_start();
    for (const Comm comm : comms) {
      const Status status = in_order ? library.destroy(comm) : library.abort(comm);
      if (first == kSuccess && status != kInProgress) first = status;
    }
    const Status closed = library.group_end();
    return first == kSuccess ? closed : first;
  });
  if (!status) return tl::unexpected(status.error());
  if (*status != kSuccess && *status != kInProgress)
    return tl::unexpected(nccl_error(what, *status, nullptr));
  return {};
}

Result<void> NcclCommunicators::rebuild(const std::vector<Group>& groups, const CommunicatorConfig& config) {
  if (auto aborted = abort(); !aborted) return aborted;
  return connect(groups, config);
}

NcclCommunicators::Status NcclCommunicators::enqueue(const Operation& one, nccl_abi::Stream stream) const {
  const Comm comm = comms_.at(one.group);
  switch (one.kind) {
    case Collective::all_gather:
      return library_.all_gather(one.send, one.receive, one.elements, one.type, comm, stream);
    case Collective::reduce_scatter:
      return library_.reduce_scatter(one.send, one.receive, one.elements, one.type, one.op, comm, stream);
    case Collective::sendrecv: {
      const Status sent = library_.send(one.send, one.elements, one.type, one.to, comm, stream);
      if (sent != kSuccess && sent != kInProgress) return sent;
      return library_.receive(one.receive, one.elements, one.type, one.from, comm, stream);
    }
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::barrier:
      break;
  }
  if (one.config == nullptr || library_.all_reduce_with_config == nullptr)
    return library_.all_reduce(one.send, one.receive, one.elements, one.type, one.op, comm, stream);
  return library_.all_reduce_with_config(one.send, one.receive, one.elements, one.type, one.op, comm, stream,
                                         one.config);
}

Result<void> NcclCommunicators::enqueue(std::span<const Operation> operations, nccl_abi::Stream stream) {
  if (operations.empty()) return {};
  const std::string what(to_string(operations.front().kind));
  for (const Operation& one : operations)
    if (one.group >= comms_.size())
      return fail(ErrorKind::failed, "NCCL: " + what + " in group " + std::to_string(one.group) + " of " +
                                         std::to_string(comms_.size()) + " that are connected");
  if (enter_thread_) enter_thread_();
  Status status = library_.group_start();
  for (const Operation& one : operations) {
    if (status != kSuccess && status != kInProgress) break;
    status = enqueue(one, stream);
  }
  const Status closed = library_.group_end();
  if (status == kSuccess || status == kInProgress) status = closed;
  if (status != kSuccess && status != kInProgress)
    return tl::unexpected(nccl_error(what, status, comms_.front()));
  if (status == kSuccess) return {};
  return await(comms_, what.c_str(), SteadyClock::now() + bounds_.launch);
}

std::optional<Error> NcclCommunicators::error() {
  for (std::size_t i = 0; i < comms_.size() && !error_; ++i) {
    Status state = kSuccess;
    const Status asked = library_.get_async_error(comms_[i], &state);
    if (asked != kSuccess) state = asked;
    if (state != kSuccess && state != kInProgress) error_ = nccl_error("a communicator", state, comms_[i]);
  }
  return error_;
}

}  // namespace footplate
