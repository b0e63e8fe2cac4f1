#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace footplate::test {

/// What FOOTPLATE_STAND_IN_FAULT asks for (nccl_stand_in.cpp).
struct Fault {
  std::string kind;
  std::map<std::string, std::int64_t> where;

  bool fits(const std::string& name, std::int64_t value) const {
    const auto found = where.find(name);
    return found == where.end() || found->second == value;
  }
};

inline std::vector<Fault> faults() {
  const char* given = std::getenv("FOOTPLATE_STAND_IN_FAULT");
  std::vector<Fault> list;
  std::istringstream all(given != nullptr ? given : "");
  for (std::string one; std::getline(all, one, ',');) {
    std::istringstream parts(one);
    Fault fault;
    std::getline(parts, fault.kind, ':');
    for (std::string part; std::getline(parts, part, ':');)
      if (const auto equals = part.find('='); equals != std::string::npos)
        fault.where[part.substr(0, equals)] = std::stoll(part.substr(equals + 1));
    list.push_back(std::move(fault));
  }
  return list;
}

}  // namespace footplate::test
