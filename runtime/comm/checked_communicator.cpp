#include "runtime/comm/checked_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/comm/agree.h"

namespace footplate {
namespace {

constexpr const char* kName = "debug.collectives";  ///< in the ledger

/// What a rank is about to call, as it travels.
struct CallNote {
  Collective kind = Collective::barrier;
  DataType type = DataType::float32;
  std::int64_t elements = 0;
  std::int64_t step = 0;
  std::int32_t variant = 0;
  std::array<char, 64> name{};  ///< cut, and with a zero behind

  bool operator==(const CallNote&) const = default;
};

CallNote note_of(const LedgerEntry& call) {
  CallNote note;
  note.kind = call.kind;
  note.type = call.type;
  note.elements = call.elements;
  note.step = call.step;
  note.variant = call.variant;
  std::string_view(call.name).copy(note.name.data(), note.name.size() - 1);
  return note;
}

std::string words_of(const CallNote& note) {
  std::string text = fmt::format("step {}, {}: {}", note.step, note.name.data(), to_string(note.kind));
  if (note.kind == Collective::barrier) return text;
  text += fmt::format(" of {} {}", note.elements, to_string(note.type));
  if (note.kind == Collective::broadcast) text += fmt::format(" from rank {}", note.variant);
  return text;
}

/// "rank 0: …; rank 2: …": the first rank of each different one.
template <class T>
std::string each_of(const std::vector<T>& all, std::string (*words_of_one)(const T&)) {
  std::string text;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (std::find(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rank), all[rank]) ==
        all.begin() + static_cast<std::ptrdiff_t>(rank))
      text += fmt::format("{}rank {}: {}", text.empty() ? "" : "; ", rank, words_of_one(all[rank]));
  return text;
}

std::string hash_text(const std::uint64_t& hash) {
  return fmt::format("{:016x}", hash);
}

/// An operation that is over.
class FinishedWork final : public Work {
 public:
  explicit FinishedWork(Result<void> ending) : ending_(std::move(ending)) {}
  bool done() const override { return true; }
  Result<void> wait(Clock::time_point /*deadline*/) override { return ending_; }

 private:
  const Result<void> ending_;
};

}  // namespace

std::unique_ptr<Work> CheckedCommunicator::all_reduce(Buffer buffer, ReduceOp op, const char* name) {
  return checked(entry(Collective::all_reduce, buffer, name, static_cast<std::int32_t>(op)), buffer,
                 [&] { return inner_.all_reduce(buffer, op, name); });
}

std::unique_ptr<Work> CheckedCommunicator::broadcast(Buffer buffer, int root, const char* name) {
  return checked(entry(Collective::broadcast, buffer, name, root), buffer,
                 [&] { return inner_.broadcast(buffer, root, name); });
}

std::unique_ptr<Work> CheckedCommunicator::all_gather(Buffer send, Buffer receive, const char* name) {
  return checked(entry(Collective::all_gather, send, name), receive,
                 [&] { return inner_.all_gather(send, receive, name); });
}

std::unique_ptr<Work> CheckedCommunicator::barrier(const char* name) {
  return checked(entry(Collective::barrier, {}, name), {}, [&] { return inner_.barrier(name); });
}

/// What it gives is each rank's own: there is nothing to compare until it is gathered.
std::unique_ptr<Work> CheckedCommunicator::reduce_scatter(Buffer buffer, ReduceOp op, const char* name) {
  return checked(entry(Collective::reduce_scatter, buffer, name, static_cast<std::int32_t>(op)), {},
                 [&] { return inner_.reduce_scatter(buffer, op, name); });
}

std::unique_ptr<Work> CheckedCommunicator::all_gather_shares(Buffer buffer, const char* name) {
  return checked(entry(Collective::all_gather, buffer, name), buffer,
                 [&] { return inner_.all_gather_shares(buffer, name); });
}

/// What it gives differs from rank to rank: there is nothing to compare.
std::unique_ptr<Work> CheckedCommunicator::pass_shares(Buffer buffer, int distance, const char* name) {
  return checked(entry(Collective::sendrecv, buffer, name, distance), {},
                 [&] { return inner_.pass_shares(buffer, distance, name); });
}

std::unique_ptr<Work> CheckedCommunicator::checked(LedgerEntry call, const Buffer& result,
                                                   const Launch& launch) {
  if (!on_ || world_size() == 1) return launch();
  call.step = progress_.step();
  return std::make_unique<FinishedWork>(run(call, result, launch));
}

Result<void> CheckedCommunicator::run(const LedgerEntry& call, const Buffer& result, const Launch& launch) {
  if (auto same = same_call(call); !same) return same;
  if (auto done = launch()->wait(); !done) return done;
  return same_result(call, result);
}

Result<void> CheckedCommunicator::same_call(const LedgerEntry& call) {
  const auto all = from_all_ranks(host_, note_of(call), kName);
  if (!all) return tl::unexpected(all.error());
  if (std::ranges::adjacent_find(*all, std::not_equal_to<>()) == all->end()) return {};
  return fail(ErrorKind::failed, "debug.collectives: the ranks call different operations: " +
                                     each_of<CallNote>(*all, &words_of));
}

Result<void> CheckedCommunicator::same_result(const LedgerEntry& call, const Buffer& result) {
  if (result.elements == 0) return {};
  const auto all = from_all_ranks(host_, hash_(result), kName);
  if (!all) return tl::unexpected(all.error());
  if (std::ranges::adjacent_find(*all, std::not_equal_to<>()) == all->end()) return {};
  return fail(ErrorKind::failed,
              fmt::format("debug.collectives: the ranks have different results of {}; by their hashes, {}",
                          words_of(note_of(call)), each_of<std::uint64_t>(*all, &hash_text)));
}

}  // namespace footplate
