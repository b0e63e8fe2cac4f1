#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/json.h"

namespace footplate {

// What `footplate-rank --doctor` says of its trials. `all` is the answer as it is, for the values that a
// check keeps for programs. Errors of the readings (usage): not an object, a field of the wrong type.

/// Of versions.
struct LibrariesAnswer {
  std::string footplate;  ///< version
  std::string libtorch;
  std::string mpi;
  std::string libtorch_file;
  std::string mpi_file;
  std::string host;  ///< its own name; empty: it says none
  std::int64_t cores = 0;
  Json all = Json::object();
};
Result<void> read_json(const Json& json, LibrariesAnswer& answer);

/// Of products.
struct ProductsAnswer {
  double ratio = 0;       ///< time of OpenBLAS, divided by MKL's; 0: OpenBLAS is missing
  std::string openblas;   ///< its name, with version and kernels
  std::string automatic;  ///< what run.blas = "auto" comes to
  std::string missing;    ///< why; empty where it is there
  Json all = Json::object();
};
Result<void> read_json(const Json& json, ProductsAnswer& answer);

/// Of loss: one of two ranks was killed.
struct LossAnswer {
  std::int64_t survivors = 0;
  double noticed_ms = 0;
  Json all = Json::object();
};
Result<void> read_json(const Json& json, LossAnswer& answer);

/// Of reduce.
struct ReductionAnswer {
  double seconds = 0;
  std::int64_t elements = 0;
  std::int64_t wrong = 1;  ///< sums
  Json all = Json::object();
};
Result<void> read_json(const Json& json, ReductionAnswer& answer);

/// Of link.
struct LinkAnswer {
  double gb_per_s = 0;
  double latency_us = 0;
  std::vector<std::string> hosts;  ///< by their own names
  Json all = Json::object();
};
Result<void> read_json(const Json& json, LinkAnswer& answer);

}  // namespace footplate
