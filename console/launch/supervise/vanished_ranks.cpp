#include "console/launch/supervise/vanished_ranks.h"

#include <algorithm>

#include "console/client/runs/process_table.h"
#include "protocol/host_name.h"
#include "run_files/run_file.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr auto kOften = 1s;
/// A launcher that ends takes less, and so does a rank that has joined until rank 0 has written that.
constexpr auto kLong = 8s;

}  // namespace

bool VanishedRanks::look(Clock::time_point now) {
  if (now >= look_again_) {
    look_again_ = now + kOften;
    if (!are_gone())
      since_.reset();
    else if (!since_)
      since_ = now;
  }
  return since_ && now - *since_ >= kLong;
}

bool VanishedRanks::are_gone() const {
  const auto run = read_run_file(run_directory_);
  if (!run || run->ranks.empty() || !run->state || *run->state == RunState::starting) return false;
  return std::ranges::all_of(run->ranks, [](const RankPlace& rank) {
    return rank.host == host_name() && rank.pid > 0 && !is_footplate_process(rank.pid);
  });
}

}  // namespace footplate
