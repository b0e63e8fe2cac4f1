#include "runtime/cuda/nccl_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/comm/agree.h"
#include "runtime/comm/shares.h"
#include "runtime/cuda/tuning.h"

namespace footplate {
namespace {

/// Between two looks at whether an operation is to be given up.
constexpr std::chrono::milliseconds kLook{2};

/// In the ledger.
constexpr auto kNewCommunicators = "new communicators";

nccl_abi::DataTypeNumber nccl_type(DataType type) {
  switch (type) {
    case DataType::float32:
      return nccl_abi::kFloat32;
    case DataType::float64:
      return nccl_abi::kFloat64;
    case DataType::int64:
      return nccl_abi::kInt64;
    case DataType::uint8:
      return nccl_abi::kUint8;
    case DataType::bfloat16:
      return nccl_abi::kBfloat16;
  }
  return nccl_abi::kUint8;
}

nccl_abi::OperatorNumber nccl_operator(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return nccl_abi::kSum;
    case ReduceOp::min:
      return nccl_abi::kMin;
    case ReduceOp::max:
      return nccl_abi::kMax;
  }
  return nccl_abi::kSum;
}

/// A rule as NCCL is told it with the call. Never forced: where NCCL has none of what is asked for, it
/// chooses by itself, as where its tuner can't.
class HowDone {
 public:
  explicit HowDone(const std::optional<TuningRule>& rule) : asked_(rule.has_value()) {
    if (!rule) return;
    selection_ = selection_of(*rule);
    config_.selection = selection_.c_str();
    config_.force_selection = 0;
    if (rule->channels > 0) config_.min_ctas = config_.max_ctas = rule->channels;
  }
  HowDone(const HowDone&) = delete;
  HowDone& operator=(const HowDone&) = delete;

  const nccl_abi::CollectiveConfig* config() const { return asked_ ? &config_ : nullptr; }

 private:
  const bool asked_;
  std::string selection_;
  nccl_abi::CollectiveConfig config_;
};

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

}  // namespace

/// What one rank gives to the others, as bytes: all programs of a run are the same.
struct NcclCommunicator::Invitation {
  nccl_abi::UniqueId id{};
  CommunicatorConfig config{};
  bool valid = false;  ///< there is an id
};

/// One operation, as it was when it was launched.
struct NcclCommunicator::Launched {
  Collective kind;
  Buffer buffer;
  ReduceOp op;
  const char* name;
  std::int64_t chunk = 0;
  std::size_t together = 1;
  int distance = 0;  ///< of a sendrecv
};

NcclCommunicator::NcclCommunicator(Parts parts, const CommunicatorConfig& config)
    : parts_(std::move(parts)),
      communicators_(
          parts_.library, parts_.bounds, [this] { return parts_.queue.closed(); }, parts_.enter_thread),
      config_(config) {}

NcclCommunicator::~NcclCommunicator() = default;

std::unique_ptr<Work> NcclCommunicator::all_reduce(Buffer buffer, ReduceOp op, const char* name) {
  return launch({Collective::all_reduce, buffer, op, name, chunk_of(buffer.elements, chunk_elements_),
                 pieces_together_});
}

std::unique_ptr<Work> NcclCommunicator::reduce_scatter(Buffer buffer, ReduceOp op, const char* name) {
  return launch({.kind = Collective::reduce_scatter,
                 .buffer = buffer,
                 .op = op,
                 .name = name,
                 .together = pieces_together_});
}

std::unique_ptr<Work> NcclCommunicator::all_gather_shares(Buffer buffer, const char* name) {
  return launch({.kind = Collective::all_gather,
                 .buffer = buffer,
                 .op = ReduceOp::sum,
                 .name = name,
                 .together = pieces_together_});
}

std::unique_ptr<Work> NcclCommunicator::pass_shares(Buffer buffer, int distance, const char* name) {
  return launch({.kind = Collective::sendrecv,
                 .buffer = buffer,
                 .op = ReduceOp::sum,
                 .name = name,
                 .together = pieces_together_,
                 .distance = distance});
}

std::unique_ptr<Work> NcclCommunicator::launch(const Launched& it) {
  const bool reduces = it.kind != Collective::all_gather && it.kind != Collective::sendrecv;
  const int variant = reduces ? static_cast<int>(it.op) : it.distance;
  return parts_.queue.launch(entry(it.kind, it.buffer, it.name, variant),
                             [this, it, after = parts_.stream.mark()] {
                               auto follows = parts_.stream.follow(after);
                               return follows ? run(it) : follows;
                             });
}

Result<void> NcclCommunicator::run(const Launched& it) {
  if (!communicators_.connected())
    return tl::unexpected(absent_.value_or(Error{ErrorKind::failed, "NCCL: no communicators were made"}));
  // Of one rank all is there already, and NCCL (2.28.9) keeps memory of each group that has no work.
  auto outcome = world_size() > 1 ? enqueue(it) : Result<void>();
  if (outcome) outcome = drain(std::nullopt);
  if (!outcome) return tl::unexpected(give_up(std::move(outcome.error()), it));
  // Within a step that is tried again others may go well before the one that fails each time.
  if (parts_.queue.step() != failed_at_) failures_ = 0;
  return {};
}

Result<void> NcclCommunicator::enqueue(const Launched& it) {
  return it.kind == Collective::all_reduce ? enqueue_pieces(it) : enqueue_stripes(it);
}

/// A rule comes with the call where it is one call: NCCL doesn't launch as one what it is told so. The sum of
/// what it does is what its tuner is asked about.
Result<void> NcclCommunicator::enqueue_pieces(const Launched& it) {
  std::vector<NcclCommunicators::Operation> group;
  const std::size_t size = size_of(it.buffer.type);
  const auto flush = [&] {
    const bool alone = group.size() == 1 && parts_.rule_for;
    const HowDone how(alone ? parts_.rule_for(group.front().elements * size) : std::nullopt);
    group.front().config = how.config();
    auto outcome = communicators_.enqueue(group, parts_.stream.handle());
    group.clear();
    return outcome;
  };
  Result<void> outcome;
  in_chunks(it.buffer.elements, it.chunk, [&](std::int64_t first, std::int64_t count) {
    std::byte* data = at(it.buffer, first);
    group.push_back({.send = data,
                     .receive = data,
                     .elements = static_cast<std::size_t>(count),
                     .type = nccl_type(it.buffer.type),
                     .op = nccl_operator(it.op)});
    if (group.size() >= it.together) outcome = flush();
    return outcome.has_value();
  });
  if (outcome && !group.empty()) outcome = flush();
  return outcome;
}

/// Of this rank, in a stripe that begins at `stripe`: what it has, gets, or both.
NcclCommunicators::Operation NcclCommunicator::operation_on(const Launched& it, std::int64_t stripe,
                                                            std::int64_t block) const {
  NcclCommunicators::Operation operation{.kind = it.kind,
                                         .elements = static_cast<std::size_t>(block),
                                         .type = nccl_type(it.buffer.type),
                                         .op = nccl_operator(it.op)};
  std::byte* all = at(it.buffer, stripe);
  std::byte* mine = at(it.buffer, stripe + rank() * block);
  operation.send = it.kind == Collective::reduce_scatter ? all : mine;
  operation.receive = it.kind == Collective::reduce_scatter ? mine : all;
  if (it.kind == Collective::sendrecv) {
    operation.to = rank_after(rank(), world_size(), it.distance);
    operation.from = rank_before(rank(), world_size(), it.distance);
    operation.receive = at(it.buffer, stripe + operation.from * block);
  }
  return operation;
}

/// Stripes together as pieces are: a group of NCCL's holds 2,048 operations at most, and a sendrecv is two.
Result<void> NcclCommunicator::enqueue_stripes(const Launched& it) {
  std::vector<NcclCommunicators::Operation> group;
  Result<void> outcome;
  const auto flush = [&] {
    outcome = communicators_.enqueue(group, parts_.stream.handle());
    group.clear();
  };
  in_stripes(it.buffer.elements, world_size(), [&](std::int64_t first, std::int64_t block) {
    group.push_back(operation_on(it, first, block));
    if (group.size() >= it.together) flush();
    return outcome.has_value();
  });
  if (outcome) flush();
  return outcome;
}

/// What the stream does is done, or has come to nothing: an error of NCCL's, the end of this world, or
/// `until`.
Result<void> NcclCommunicator::drain(std::optional<SteadyClock::time_point> until) {
  for (;;) {
    const auto done = parts_.stream.drain(kLook);
    if (!done) return tl::unexpected(done.error());
    if (auto error = communicators_.error()) return tl::unexpected(*std::move(error));
    if (*done) return {};
    if (parts_.queue.closed())
      return fail(ErrorKind::lost, "NCCL: given up, since a rank was lost or communicators are made anew");
    if (until && SteadyClock::now() >= *until)
      return fail(ErrorKind::timed_out, "NCCL: what was enqueued isn't done in time");
  }
}

/// The buffer is free again once this returns, unless the abort hangs. The others hear of it by way of MPI:
/// an abort here is a hang there.
Error NcclCommunicator::give_up(Error error, const Launched& it) {
  error.message =
      fmt::format("rank {}: {} of {} failed: {}", rank(), to_string(it.kind), it.name, error.message);
  absent_ = error;
  // This rank ends, and the others hear of that: it could only keep them from finding together.
  if (parts_.stream.has_failed()) return error;
  const auto aborted = communicators_.abort();
  if (!aborted) {
    error.message += "; " + aborted.error().message;
    error.kind = ErrorKind::failed;
    return error;
  }
  static_cast<void>(parts_.stream.drain(parts_.bounds.abort));
  failed_at_ = parts_.queue.step();
  if (error.kind == ErrorKind::lost || ++failures_ > kMostFailures || !parts_.find_together) return error;
  error.kind = ErrorKind::lost;
  parts_.find_together();
  return error;
}

Result<void> NcclCommunicator::connect() {
  renewals_ = 0;
  return meet(0);
}

Result<void> NcclCommunicator::rejoin(std::uint32_t /*generation*/, std::uint64_t /*sequence*/) {
  // A rank that was lost may have kept some from hearing that new communicators were agreed on.
  std::vector<std::int64_t> renewals(static_cast<std::size_t>(world_size()));
  if (auto told = all_gather({&renewals_, 1, DataType::int64},
                             {renewals.data(), static_cast<std::int64_t>(renewals.size()), DataType::int64},
                             "renewals of communicators")
                      ->wait();
      !told)
    return told;
  const auto most = std::max_element(renewals.begin(), renewals.end());
  renewals_ = *most;
  return meet(static_cast<int>(most - renewals.begin()));
}

Result<double> NcclCommunicator::renew(const CommunicatorConfig& config) {
  const auto start = SteadyClock::now();
  const CommunicatorConfig before = std::exchange(config_, config);
  auto made = meet(0);
  if (made) {
    ++renewals_;
    return seconds_since(start);
  }
  config_ = before;
  if (made.error().kind == ErrorKind::lost) return tl::unexpected(made.error());
  if (auto back = meet(0); !back) {
    back.error().message =
        made.error().message + "; and those of before can't be made again: " + back.error().message;
    return tl::unexpected(back.error());
  }
  return fail(ErrorKind::refused, "no new communicators, those of before are back after " +
                                      fmt::format("{:.1f} s: ", seconds_since(start)) + made.error().message);
}

/// Rank `root` gives an id and its configuration to all, and all enter, or none does.
Result<void> NcclCommunicator::meet(int root) {
  static_assert(std::is_trivially_copyable_v<Invitation>);
  Invitation invitation;
  Result<void> mine;
  if (rank() == root) {
    const auto id = communicators_.new_id();
    invitation.valid = id.has_value();
    if (id)
      invitation.id = *id;
    else
      mine = tl::unexpected(id.error());
    invitation.config = config_;
  }
  if (auto told = broadcast({&invitation, sizeof(invitation), DataType::uint8}, root, "NCCL's id")->wait();
      !told)
    return told;
  config_ = invitation.config;
  if (invitation.valid) mine = enter(invitation);
  return agree(parts_.host, mine);
}

/// On the communication thread, as every call of NCCL. A failure isn't the queue's: all can be as before.
Result<void> NcclCommunicator::enter(const Invitation& invitation) {
  const NcclCommunicators::Group group{"gradients", invitation.id, rank(), world_size()};
  const auto outcome = std::make_shared<Result<void>>();
  const auto done = parts_.queue
                        .launch(entry(Collective::barrier, {}, kNewCommunicators),
                                [this, outcome, group, config = invitation.config]() -> Result<void> {
                                  *outcome = communicators_.rebuild({group}, config);
                                  if (*outcome) *outcome = probe();
                                  if (*outcome) return {};
                                  absent_ = outcome->error();
                                  return {};
                                })
                        ->wait();
  return done ? *outcome : done;
}

/// Connections are made by the first operation, so that what doesn't work shows only then.
Result<void> NcclCommunicator::probe() {
  const std::span<float> numbers = parts_.stream.scratch();
  std::iota(numbers.begin(), numbers.end(), static_cast<float>(rank()));
  const NcclCommunicators::Operation sum{
      .send = numbers.data(), .receive = numbers.data(), .elements = numbers.size()};
  auto outcome = communicators_.enqueue({&sum, 1}, parts_.stream.handle());
  if (outcome) outcome = drain(SteadyClock::now() + parts_.bounds.connect);
  const int ranks = world_size(), of_ranks = ranks * (ranks - 1) / 2;
  for (std::size_t i = 0; i < numbers.size() && outcome; ++i)
    if (const auto expected = static_cast<float>(of_ranks + ranks * static_cast<int>(i));
        numbers[i] != expected)
      outcome = fail(ErrorKind::failed,
                     fmt::format("NCCL: a sum over all ranks is {} and has to be {}", numbers[i], expected));
  if (outcome) return {};
  if (const auto aborted = communicators_.abort(); !aborted) return aborted;
  static_cast<void>(parts_.stream.drain(parts_.bounds.abort));
  return outcome;
}

bool NcclCommunicator::finish() {
  if (!parts_.queue.wait_idle(parts_.bounds.abort)) return false;
  static_cast<void>(communicators_.finish());
  return !communicators_.stuck();
}

}  // namespace footplate
