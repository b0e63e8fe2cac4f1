#include "runtime/rank/arrival_note.h"

#include <fcntl.h>
#include <unistd.h>

#include "protocol/host_name.h"

namespace footplate {

ArrivalNote::ArrivalNote(const std::filesystem::path& folder, int rank) {
  arrival_.rank = rank;
  arrival_.pid = ::getpid();
  arrival_.host = host_name();
  if (folder.empty()) return;
  const auto path = folder / arrival_file(rank);
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
}

ArrivalNote::~ArrivalNote() {
  if (file_ >= 0) ::close(file_);
}

void ArrivalNote::note(const std::string& place, bool waits) {
  ++arrival_.stage;
  arrival_.place = place;
  arrival_.waits = waits;
  const std::string line = to_line(arrival_.to_json());
  if (file_ >= 0) [[maybe_unused]]
    const auto written = ::write(file_, line.data(), line.size());
}

}  // namespace footplate
