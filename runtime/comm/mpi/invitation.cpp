#include "runtime/comm/mpi/invitation.h"

#include <fmt/format.h>
#include <pthread.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "protocol/mutex.h"
#include "runtime/base/times.h"
#include "runtime/comm/mpi/mpi_session.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kHost = 0, kJoiningRank = 1;  // in the communicator of the two
constexpr int kGreeting = 1, kReady = 2, kWelcome = 3, kNotWanted = 4;
/// Between looks for a message: a blocking receive would keep a core busy.
constexpr milliseconds kInvitationLook{10};
/// For a joining rank that is ready to take its welcome.
constexpr milliseconds kTakesWelcome{5000};

/// The size of a message of this tag, or -1 where none is there. Error: MPI's.
Result<int> look_for(MPI_Comm pair, int from, int tag) {
  int found = 0, size = -1;
  MPI_Status status;
  if (const int code = MPI_Iprobe(from, tag, pair, &found, &status); code != MPI_SUCCESS)
    return fail(ErrorKind::lost, mpi_error_text(code));
  if (found != 0) MPI_Get_count(&status, MPI_BYTE, &size);
  return size;
}

/// An empty message, on its way when this returns; nobody waits for it.
void say(MPI_Comm pair, int to, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Isend(nullptr, 0, MPI_BYTE, to, tag, pair, &request) == MPI_SUCCESS) MPI_Request_free(&request);
}

/// The joining rank's: a text of rank 0's.
Result<std::string> await_text(MPI_Comm host, int tag, milliseconds at_most) {
  const auto deadline = Clock::now() + at_most;
  while (Clock::now() < deadline) {
    const auto unwanted = look_for(host, kHost, kNotWanted);
    const auto size = look_for(host, kHost, tag);
    if (!unwanted || !size) return fail(ErrorKind::lost, "rank 0, which had called it, is gone");
    if (*unwanted >= 0) return fail(ErrorKind::refused, "it isn't wanted any more");
    if (*size >= 0) {
      std::string text(static_cast<std::size_t>(*size), '\0');
      if (MPI_Recv(text.data(), *size, MPI_BYTE, kHost, tag, host, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return fail(ErrorKind::lost, "rank 0, which had called it, is gone");
      return text;
    }
    std::this_thread::sleep_for(kInvitationLook);
  }
  return fail(ErrorKind::timed_out, "nobody let it in in time");
}

}  // namespace

struct Invitation::Shared {
  std::vector<std::string> command;
  std::string greeting;
  milliseconds at_most{0};
  std::function<void()> changed;
  std::atomic<JoiningRank> state{JoiningRank::coming};
  std::atomic<bool> unwanted{false};
  Mutex mutex;
  std::string failure GUARDED_BY(mutex);
  MPI_Comm pair = MPI_COMM_NULL;  ///< written before `state` is ready
  std::string welcome;            ///< kept for as long as it may be read

  void become(JoiningRank now, const std::string& why = "") {
    MutexLock lock(mutex);  // nobody is called after dismiss()
    failure = why;
    state = unwanted ? JoiningRank::none : now;
    if (!unwanted) changed();
  }
};

Invitation::Invitation(std::vector<std::string> command, std::string greeting, milliseconds at_most,
                       std::function<void()> changed)
    : shared_(std::make_shared<Shared>()) {
  shared_->command = std::move(command);
  shared_->greeting = std::move(greeting);
  shared_->at_most = at_most;
  shared_->changed = std::move(changed);
  std::thread thread([shared = shared_] { serve(shared); });
  pthread_setname_np(thread.native_handle(), "invitation");
  thread.detach();
}

JoiningRank Invitation::state() const {
  return shared_->state;
}

std::string Invitation::failure() const {
  MutexLock lock(shared_->mutex);
  return shared_->failure;
}

void Invitation::dismiss() {
  MutexLock lock(shared_->mutex);
  shared_->unwanted = true;
  if (state() == JoiningRank::ready) say(shared_->pair, kJoiningRank, kNotWanted);
  if (state() != JoiningRank::coming) shared_->state = JoiningRank::none;
}

void Invitation::serve(const std::shared_ptr<Shared>& shared) {
  const auto deadline = Clock::now() + shared->at_most;
  std::vector<char*> arguments;
  for (std::size_t i = 1; i < shared->command.size(); ++i) arguments.push_back(shared->command[i].data());
  arguments.push_back(nullptr);
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "bind_to", "none");  // as mpirun's own (console/launch/start/command.cpp)
  MPI_Comm between = MPI_COMM_NULL, pair = MPI_COMM_NULL;
  int error = MPI_SUCCESS;
  int code = MPI_Comm_spawn(shared->command.front().data(), arguments.data(), 1, info, 0, MPI_COMM_SELF,
                            &between, &error);
  if (code == MPI_SUCCESS) {
    MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN);
    code = MPI_Intercomm_merge(between, 0, &pair);
  }
  if (code != MPI_SUCCESS)
    return shared->become(JoiningRank::failed, "it couldn't be started: " + mpi_error_text(code));
  MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
  MPI_Request greeting = MPI_REQUEST_NULL;  // kept for as long as the process: `shared` is with the thread
  MPI_Isend(shared->greeting.data(), static_cast<int>(shared->greeting.size()), MPI_BYTE, kJoiningRank,
            kGreeting, pair, &greeting);
  for (;;) {
    const auto said = look_for(pair, kJoiningRank, kReady);
    if (!said)
      return shared->become(JoiningRank::failed, "it died before it was ready: " + said.error().message);
    if (*said >= 0) break;
    if (shared->unwanted || Clock::now() > deadline) {
      say(pair, kJoiningRank, kNotWanted);
      return shared->become(JoiningRank::failed,
                            fmt::format("it wasn't ready after {:.3g} s (comm.init_timeout_s)",
                                        std::chrono::duration<double>(shared->at_most).count()));
    }
    std::this_thread::sleep_for(kInvitationLook);
  }
  MPI_Recv(nullptr, 0, MPI_BYTE, kJoiningRank, kReady, pair, MPI_STATUS_IGNORE);
  shared->pair = pair;
  shared->become(JoiningRank::ready);
}

/// The text stays where it is: a process that is stopped may read it once it goes on.
MPI_Comm Invitation::welcome(const std::string& text) {
  if (state() != JoiningRank::ready) return MPI_COMM_NULL;
  const auto failed = [this](const std::string& why) {
    static std::vector<std::shared_ptr<Shared>> may_be_read;
    may_be_read.push_back(shared_);
    shared_->become(JoiningRank::failed, "it " + why + " as it was to be let in");
    return MPI_COMM_NULL;
  };
  shared_->welcome = text;
  MPI_Request request = MPI_REQUEST_NULL;
  const auto deadline = Clock::now() + kTakesWelcome;
  int code = MPI_Isend(shared_->welcome.data(), static_cast<int>(shared_->welcome.size()), MPI_BYTE,
                       kJoiningRank, kWelcome, shared_->pair, &request);
  for (int sent = 0; code == MPI_SUCCESS && sent == 0;) {
    if (code = MPI_Test(&request, &sent, MPI_STATUS_IGNORE); code != MPI_SUCCESS || sent != 0) break;
    if (Clock::now() > deadline)
      return failed(fmt::format("didn't answer within {:.3g} s", in_seconds(kTakesWelcome)));
    std::this_thread::sleep_for(milliseconds(1));
  }
  if (code != MPI_SUCCESS) return failed("was gone (" + mpi_error_text(code) + ")");
  shared_->state = JoiningRank::none;  // it belongs to the run now, or is lost with the attempt
  return shared_->pair;
}

Result<std::string> await_greeting(MPI_Comm host, milliseconds at_most) {
  return await_text(host, kGreeting, at_most);
}

Result<std::string> await_welcome(MPI_Comm host, milliseconds at_most) {
  say(host, kHost, kReady);
  return await_text(host, kWelcome, at_most);
}

}  // namespace footplate
