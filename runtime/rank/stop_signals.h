#pragma once

#include "runtime/control/control.h"

namespace footplate {

/// Before MPI starts: what a terminal sends, or a signal that is handed on early, must not kill a rank.
void install_signal_handlers();

/// SIGUSR2 and SIGTERM save and stop from now on; one that came before does so at once. `control` lives until
/// let_no_signal_reach_control().
void let_signals_reach(Control& control);

/// After this no handler uses the control.
void let_no_signal_reach_control();

}  // namespace footplate
