#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "console/doctor/finding.h"
#include "console/doctor/trial_answers_json.h"
#include "console/launch/start/host_list.h"

namespace footplate {

// Several hosts: which of them are measured together, and what it means where one doesn't start a process.

/// Pairs of numbers from 0 on: all where there are at most kAllPairs hosts, else neighbours in a ring.
inline constexpr std::size_t kAllPairs = 8;
std::vector<std::pair<std::size_t, std::size_t>> pairs_to_measure(std::size_t hosts);

/// `there` and `here`: what footplate-rank says of its libraries (`--doctor versions`) on the host and on
/// this machine.
Check check_host(const Host& host, const LibrariesAnswer& there, const LibrariesAnswer& here);

/// `answer`: of `footplate-rank --doctor link` between the two.
Check check_link(const std::string& name, const LinkAnswer& answer);

/// "link n1 - n2".
std::string link_name(const Host& a, const Host& b);

}  // namespace footplate
