#include "runtime/checkpoint/tries.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

namespace footplate {
namespace {

using std::chrono::steady_clock;

constexpr int kLonger = 4;  ///< each pause than the one before
constexpr std::chrono::milliseconds kLook{20};

/// docs/checkpoints.md lists them.
constexpr std::array kPassing{EIO,          ESTALE,       ETIMEDOUT, EREMOTEIO,   ENOTCONN,  ECONNRESET,
                              ECONNABORTED, ECONNREFUSED, ENETDOWN,  ENETUNREACH, EHOSTDOWN, EHOSTUNREACH,
                              ESHUTDOWN,    ENOSPC,       EDQUOT,    EAGAIN,      EBUSY,     ENOLCK,
                              ENOMEM,       EMFILE,       ENFILE};

}  // namespace

std::error_code error_of_system() {
  return {errno, std::generic_category()};
}

bool may_pass(const std::error_code& error) {
  return (error.category() == std::generic_category() || error.category() == std::system_category()) &&
         std::find(kPassing.begin(), kPassing.end(), error.value()) != kPassing.end();
}

bool Tries::wait(const std::function<bool()>& goes_on) {
  --left_;
  const auto until = steady_clock::now() + pause_;
  pause_ *= kLonger;
  for (auto now = steady_clock::now(); now < until; now = steady_clock::now()) {
    if (goes_on && !goes_on()) return false;
    std::this_thread::sleep_for(std::min<steady_clock::duration>(kLook, until - now));
  }
  return !goes_on || goes_on();
}

}  // namespace footplate
