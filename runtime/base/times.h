#pragma once

#include <chrono>
#include <cstddef>

namespace footplate {

/// A duration as the number of seconds that JSON carries.
template <typename Rep, typename Period>
double in_seconds(std::chrono::duration<Rep, Period> time) {
  return std::chrono::duration<double>(time).count();
}

/// Every duration and bound of the order protocol, so that tests can shorten them.
struct ControlTimes {
  using ms = std::chrono::milliseconds;
  ms heartbeat{600};            ///< waking costs more than what is done then: not more often than needed
  ms stalled{900};              ///< a rank unheard of for longer is named; more than a heartbeat, under 1 s
  ms waiting{1000};             ///< first report of whom an order waits for; doubles up to waiting_most
  ms waiting_most{30000};       ///< longest distance between two such reports
  ms outcome{5000};             ///< an order that isn't committed by then is aborted
  ms missing{2000};             ///< a collective running for longer is looked into for who is missing
  ms inquiry{1000};             ///< how long ranks have to answer what they know of a collective
  ms console_survives{1000};    ///< a console that lived so long didn't fail at its start: outside killed it
  ms console_reads_end{1000};   ///< how long finish() waits for the console to read the end
  ms stop_retry{1000};          ///< a stop by a signal that was aborted is tried again after this
  ms rebuild{60000};            ///< how long those who are left may take to find together after a loss
  ms lone_loss{10000};          ///< training that met a loss which nobody else knows of is helped after this
  std::size_t queue = 64;       ///< orders waiting for their turn; more are refused
  std::size_t committed = 256;  ///< orders committed ahead of their step; more are refused
  std::size_t reports = 1000;   ///< final reports kept for a new console
};

}  // namespace footplate
