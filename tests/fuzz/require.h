#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the fuzz target where something that has to hold doesn't. Unlike assert, in every build.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "doesn't hold: %s\n", what);
  std::abort();
}
