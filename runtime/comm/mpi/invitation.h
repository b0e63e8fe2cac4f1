#pragma once

#include <mpi.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/world.h"

namespace footplate {

/// Rank 0's side of one more process, from MPI_Comm_spawn until it can join. On a thread of its own, which is
/// left behind where MPI doesn't return (another rank dies during the spawn).
class Invitation {
 public:
  /// `command`: program and arguments. `greeting` is for await_greeting(). `changed` is called by that thread
  /// whenever state() is another, until dismiss(). A joining rank that isn't ready after `at_most` has
  /// failed.
  Invitation(std::vector<std::string> command, std::string greeting, std::chrono::milliseconds at_most,
             std::function<void()> changed);
  ~Invitation() { dismiss(); }
  Invitation(const Invitation&) = delete;
  Invitation& operator=(const Invitation&) = delete;

  /// Any thread. `none`: it has been welcomed or dismissed; `coming` also where it has been dismissed and the
  /// thread is still in MPI: nobody else can be invited then.
  JoiningRank state() const;
  std::string failure() const;

  /// A joining rank that hasn't been let in is told to end, now or as soon as it can be. Doesn't wait.
  void dismiss();

  /// Tells a ready joining rank `text`, upon which it enters MpiSession::join(). The communicator of the two,
  /// or MPI_COMM_NULL where it didn't take it in time.
  MPI_Comm welcome(const std::string& text);

 private:
  struct Shared;
  static void serve(const std::shared_ptr<Shared>& shared);
  std::shared_ptr<Shared> shared_;
};

// The joining rank's side, over MpiSession::host(). Errors: it isn't wanted any more, rank 0 is gone, or
// nothing came within `at_most`.

Result<std::string> await_greeting(MPI_Comm host, std::chrono::milliseconds at_most);
/// It is ready: says so, and waits for what welcome() gives.
Result<std::string> await_welcome(MPI_Comm host, std::chrono::milliseconds at_most);

}  // namespace footplate
