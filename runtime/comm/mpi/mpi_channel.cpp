#include "runtime/comm/mpi/mpi_channel.h"

#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/doorbell.h"
#include "runtime/comm/mpi/exchange_bells.h"
#include "runtime/comm/wake_event.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;
using Bytes = std::vector<std::uint8_t>;
using Clock = std::chrono::steady_clock;

constexpr int kTag = 1;
/// Between looks for messages that don't ring: 0.09 % of a core (facts: measured).
constexpr milliseconds kLook{20};
/// The same where ranks of other hosts ring: a ring may be lost on the way. Four a second would cost as much
/// as all the rest.
constexpr milliseconds kLookForLostRings{1000};
/// Between questions to ranks of other hosts that haven't rung yet; later on, to those that don't answer.
constexpr milliseconds kOftenAsked{20};
constexpr milliseconds kSeldomAsked{5000};
constexpr int kQuestions = 250;  ///< of the first kind
/// While a message of ours is on its way, or one that has rung isn't visible yet.
constexpr milliseconds kSoon{1};
/// When to look after a ring. While another thread is inside MPI's progress, a probe sees nothing of what is
/// there, so that one message found says nothing about a second one that rang at the same time.
constexpr std::array<milliseconds, 6> kLooksAfterRing{8ms, 4ms, 2ms, kSoon, kSoon, kSoon};  // the last first
/// How long the last messages get to leave when the channel ends.
constexpr milliseconds kLinger{1000};

class MpiChannel final : public MessageChannel {
 public:
  MpiChannel(MpiSession& session, const std::filesystem::path& directory) : session_(session) {
    if (!directory.empty())
      if (auto bell = Doorbell::install(directory, origin_of(session.rank()))) bell_ = *std::move(bell);
    if (has_several_hosts(session)) remote_ = exchange_bells(session);
    meet_peers();
  }

  ~MpiChannel() override {
    const auto deadline = std::chrono::steady_clock::now() + kLinger;
    while (!sending_.empty() && std::chrono::steady_clock::now() < deadline) {
      release_sent();
      std::this_thread::sleep_for(kSoon);
    }
    abandon();
  }

  int rank() const override { return rank_; }
  int world_size() const override { return session_.world_size(); }
  bool rings() const override { return rings_; }
  void wake() override { wake_.wake(); }

  void send(int to, const MessageBytes& bytes) override {
    post(to, bytes);
    release_sent();
    if (to != rank_) ring(to);
  }

  /// Looks once for what has left, and not again for each.
  void send_to(const std::vector<int>& ranks, const MessageBytes& bytes) override {
    for (const int rank : ranks) post(rank, bytes);
    release_sent();
    for (const int rank : ranks)
      if (rank != rank_) ring(rank);
  }

  /// One that is still unsent says enough: they would pile up before a receiver that is stopped.
  void send_quietly(int to, const MessageBytes& bytes) override {
    release_sent();
    const auto quiet = [to](const Transfer& transfer) { return transfer.quiet && transfer.peer == to; };
    if (std::any_of(sending_.begin(), sending_.end(), quiet)) return;
    post(to, bytes, /*quiet=*/true);
    release_sent();
  }

  void wake_peers() override {
    for (int rank = 0; rank < world_size(); ++rank)
      if (rank != rank_) ring(rank);
  }

  void rebuilt() override {
    look_due_ = true;
    abandon();
    // One that has joined knows nobody's bell, and nobody its own.
    if (session_.world_size() > ranks_ && has_several_hosts(session_)) remote_ = exchange_bells(session_);
    meet_peers();
  }

  std::optional<Message> poll() override {
    if (!own_.empty()) {
      Message message = std::move(own_.front());
      own_.pop_front();
      return message;
    }
    if (session_.lost()) return std::nullopt;
    if (look_due_) accept_one();
    auto message = take_received();
    if (!message) release_sent();  // once for all that are taken in a row
    return message;
  }

  void wait(milliseconds at_most, int extra_fd) override {
    if (!own_.empty()) return;
    const bool under_way = !sending_.empty() || !receiving_.empty();
    look_due_ = under_way || looks_ > 0;
    if (under_way) at_most = std::min(at_most, kSoon);
    if (looks_ > 0) at_most = std::min(at_most, kLooksAfterRing[--looks_]);
    sleep(at_most, extra_fd);
  }

 private:
  struct Transfer {
    int peer = 0;
    Bytes bytes{};        ///< that come
    MessageBytes sent{};  ///< or that leave
    MPI_Request request = MPI_REQUEST_NULL;
    bool had_to_wait = false;
    bool quiet = false;
  };

  void meet_peers() {
    comm_ = session_.control();
    rank_ = session_.rank();
    ranks_ = session_.world_size();
    questions_ = kQuestions;
    ask_peers();
  }

  bool is_here(int rank) const { return host_of(rank) == host_of(rank_); }
  bool can_ring(int rank) const {
    if (is_here(rank)) return bell_ != nullptr;
    return remote_ != nullptr && remote_->hears(origin_of(rank));
  }

  /// Finds out whose rings get here.
  void ask_peers() {
    has_remote_ = false;
    rings_ = true;
    for (int rank = 0; rank < world_size(); ++rank) {
      if (rank == rank_) continue;
      has_remote_ = has_remote_ || !is_here(rank);
      if (can_ring(rank)) continue;
      rings_ = false;
      if (remote_ && !is_here(rank)) remote_->ask(origin_of(rank));
    }
    if (questions_ > 0) --questions_;
    ask_at_ = Clock::now() + (questions_ > 0 ? kOftenAsked : kSeldomAsked);
  }

  milliseconds longest_look() const {
    if (!rings_) return kLook;
    return has_remote_ ? kLookForLostRings : milliseconds::max();
  }

  /// MPI may still read what a stuck receiver hasn't taken: better lost than freed under it.
  void abandon() {
    for (auto* transfers : {&sending_, &receiving_}) {
      for (auto& pending : *transfers) new (std::nothrow) Transfer(std::move(pending));
      transfers->clear();
    }
  }

  void post(int to, const MessageBytes& bytes, bool quiet = false) {
    if (to == rank_) {
      own_.push_back({rank_, *bytes});
      return;
    }
    if (session_.lost()) return;
    auto& pending = sending_.emplace_back(Transfer{.peer = to, .sent = bytes, .quiet = quiet});
    const int size = static_cast<int>(bytes->size());
    const int code = MPI_Isend(bytes->data(), size, MPI_BYTE, to, kTag, comm_, &pending.request);
    if (code != MPI_SUCCESS) {
      session_.tells_loss(code);
      sending_.pop_back();
    }
  }

  /// Until `at_most` has passed or there is a reason to look. Without doorbells the looks are taken
  /// here, where they cost least.
  void sleep(milliseconds at_most, int extra_fd) {
    for (;;) {
      if (!rings_ && Clock::now() >= ask_at_) ask_peers();
      const auto slice = std::min(at_most, longest_look());
      const auto woken = wake_.wait(slice, bell_ ? bell_->fd() : -1, extra_fd, remote_ ? remote_->fd() : -1);
      at_most -= slice;
      if (woken.fd0) bell_->silence();
      const bool is_rung = woken.fd0 || (woken.fd2 && !remote_->take().empty());
      if (is_rung) looks_ = kLooksAfterRing.size();
      if (is_rung || !woken.at_all() || !rings_) look_due_ = true;
      if (woken.at_all() || at_most.count() <= 0 || session_.lost()) return;
      int found = 0;
      const int code = MPI_Iprobe(MPI_ANY_SOURCE, kTag, comm_, &found, MPI_STATUS_IGNORE);
      if (found || session_.tells_loss(code)) return;
    }
  }

  enum class State { under_way, done, failed };

  State look(Transfer& transfer) {
    int done = 0;
    if (const int code = MPI_Test(&transfer.request, &done, MPI_STATUS_IGNORE); code != MPI_SUCCESS) {
      session_.tells_loss(code);
      return State::failed;
    }
    return done != 0 ? State::done : State::under_way;
  }

  /// A message that had to wait for its receiver rings again once it has left.
  void release_sent() {
    sending_.remove_if([this](Transfer& transfer) {
      const State state = look(transfer);
      if (state == State::done && transfer.had_to_wait && !transfer.quiet) ring(transfer.peer);
      transfer.had_to_wait = true;
      return state != State::under_way;
    });
  }

  void ring(int to) {
    if (bell_ && is_here(to)) bell_->ring(origin_of(to));
    if (remote_ && !is_here(to)) remote_->ring(origin_of(to));
  }

  int origin_of(int rank) const { return session_.members().origins[static_cast<std::size_t>(rank)]; }

  const std::string& host_of(int rank) const { return session_.hosts()[static_cast<std::size_t>(rank)]; }

  /// Begins to receive the next message. A large one comes in pieces: nobody waits for it here, so a
  /// rank that is stopped in the middle of sending holds up its own messages only.
  void accept_one() {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    // A probe that finds nothing makes Open MPI take in what has arrived, for the next probe to find. Where
    // no other thread is in MPI (an evaluation computes for seconds) one probe a turn would be a turn late.
    for (int look = 0; look < 2 && !found; ++look)
      if (const int code = MPI_Improbe(MPI_ANY_SOURCE, kTag, comm_, &found, &message, &status);
          code != MPI_SUCCESS) {
        session_.tells_loss(code);
        return;
      }
    if (!found) return;
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    auto& pending = receiving_.emplace_back(Transfer{.peer = status.MPI_SOURCE});
    pending.bytes.resize(static_cast<std::size_t>(size));
    MPI_Imrecv(pending.bytes.data(), size, MPI_BYTE, &message, &pending.request);
  }

  /// The first complete message, each source's in the order sent.
  std::optional<Message> take_received() {
    std::set<int> held_up;
    for (auto it = receiving_.begin(); it != receiving_.end();) {
      const State state = held_up.count(it->peer) > 0 ? State::under_way : look(*it);
      if (state == State::under_way) {
        held_up.insert(it->peer);
        ++it;
        continue;
      }
      Transfer complete = std::move(*it);
      it = receiving_.erase(it);
      if (state == State::failed) continue;
      return Message{complete.peer, std::move(complete.bytes)};
    }
    return std::nullopt;
  }

  MpiSession& session_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int ranks_ = 0;                   ///< in the world so far
  std::unique_ptr<Doorbell> bell_;  ///< null: it couldn't be installed. By the ranks' numbers at the start
  std::unique_ptr<RemoteBells> remote_;  ///< null: all ranks are on this host, or it couldn't be installed
  bool rings_ = false;                   ///< all who may send
  bool has_remote_ = false;              ///< some of them on other hosts
  Clock::time_point ask_at_{};
  int questions_ = 0;  ///< left, to those that haven't rung
  WakeEvent wake_;
  std::deque<Message> own_;
  std::list<Transfer> sending_;
  std::list<Transfer> receiving_;
  std::size_t looks_ = 0;  ///< left of kLooksAfterRing
  /// Not where the control thread was woken by its own rank or its console: a look costs more than what it
  /// was woken for, and those who have something to say ring, or have time.
  bool look_due_ = true;
};

}  // namespace

std::unique_ptr<MessageChannel> make_mpi_channel(MpiSession& session,
                                                 const std::filesystem::path& doorbell_directory) {
  return std::make_unique<MpiChannel>(session, doorbell_directory);
}

}  // namespace footplate
