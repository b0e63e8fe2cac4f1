#include "runtime/base/progress.h"

namespace footplate {

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::starting:
      return "starting";
    case Phase::boundary:
      return "boundary";
    case Phase::data:
      return "data";
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::reduce:
      return "reduce";
    case Phase::optimizer:
      return "optimizer";
    case Phase::evaluation:
      return "evaluation";
    case Phase::saving:
      return "saving";
    case Phase::paused:
      return "paused";
    case Phase::ending:
      return "ending";
    case Phase::ended:
      return "ended";
  }
  return "?";
}

}  // namespace footplate
