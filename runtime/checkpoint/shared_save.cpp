#include "runtime/checkpoint/shared_save.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "protocol/json.h"
#include "run_files/json_file.h"
#include "runtime/base/clock.h"
#include "runtime/comm/agree.h"

namespace footplate {
namespace {

/// What each rank tells of its part.
struct PartOfRank {
  std::uint64_t bytes = 0;   ///< of its file; 0: it had nothing to write
  std::uint64_t failed = 0;  ///< 1: yes
  std::array<char, 64> sha256{};
};

PartOfRank told_of(const Result<ManifestFile>& written) {
  PartOfRank mine;
  mine.failed = written ? 0 : 1;
  if (written) {
    mine.bytes = written->bytes;
    written->sha256.copy(mine.sha256.data(), mine.sha256.size());
  }
  return mine;
}

/// Where a rank leaves its note.
std::filesystem::path note_of(const std::filesystem::path& folder, int rank) {
  return folder / ("rank-" + std::to_string(rank) + ".written");
}

constexpr std::chrono::milliseconds kLookAgain{20};
constexpr int kLastLooks = 50;

/// And not only out of reach.
bool is_gone(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::status(folder, error).type() == std::filesystem::file_type::not_found;
}

}  // namespace

std::string file_of_rank(int rank) {
  return "rank-" + std::to_string(rank) + ".safetensors";
}

Result<SharedSave> SharedSave::begin(Communicator& ranks, const Result<Plan>& mine) {
  const bool tells = ranks.rank() == 0;
  Result<void> outcome = !tells || mine ? Result<void>() : tl::unexpected(mine.error());
  std::string plan;
  try {
    if (tells && mine) plan = Json{mine->temporary.string(), mine->alike.string(), mine->step}.dump();
  } catch (const Json::exception& error) {  // a path that isn't UTF-8
    outcome = fail(ErrorKind::failed,
                   "the path of " + mine->temporary.string() + " can't be told to others: " + error.what());
  }
  if (auto agreed = agree(ranks, outcome); !agreed) return tl::unexpected(agreed.error());
  const auto told = from_rank(ranks, 0, plan);
  if (!told) return tl::unexpected(told.error());
  if (tells) return SharedSave(ranks, *mine);
  const Json read = Json::parse(*told);
  return SharedSave(ranks,
                    {read[0].get<std::string>(), read[1].get<std::string>(), read[2].get<std::int64_t>()});
}

Result<bool> SharedSave::all_see_folder() const {
  std::error_code none;
  const auto mine = static_cast<std::uint8_t>(std::filesystem::is_directory(plan_.temporary, none));
  const auto all = from_all_ranks(*ranks_, mine, "checkpoint folder");
  if (!all) return tl::unexpected(all.error());
  return std::all_of(all->begin(), all->end(), [](std::uint8_t sees) { return sees != 0; });
}

void SharedSave::write(CheckpointStore& store, std::span<const TensorView> tensors, const Wrote& wrote) {
  if (!tensors.empty())
    written_ =
        store.write_part(plan_.temporary, plan_.step, file_of_rank(rank_), tensors, plan_.alike, wrote);
}

Result<std::vector<ManifestFile>> SharedSave::gather() const {
  const auto all = from_all_ranks(*ranks_, told_of(written_), "checkpoint parts");
  if (!all) return tl::unexpected(all.error());
  if (std::any_of(all->begin(), all->end(), [](const PartOfRank& one) { return one.failed != 0; })) {
    const auto reasons = gather_reasons(*ranks_, written_ ? "" : written_.error().message);
    if (!reasons) return tl::unexpected(reasons.error());
    return fail(ErrorKind::failed, *reasons);
  }
  std::vector<ManifestFile> files;
  for (int rank = 0; rank < static_cast<int>(all->size()); ++rank)
    if (const PartOfRank& part = (*all)[static_cast<std::size_t>(rank)]; part.bytes > 0)
      files.push_back({file_of_rank(rank), part.bytes, std::string(part.sha256.data(), part.sha256.size())});
  return files;
}

void SharedSave::leave_note(const std::atomic<bool>& gives_up, std::chrono::milliseconds at_most) const {
  const auto path = note_of(plan_.temporary, rank_);
  const auto goes_on = [&gives_up] { return !gives_up; };
  Tries tries(kFourTries);
  while (written_) {
    if (write_json_file(path, {{"bytes", written_->bytes}, {"sha256", written_->sha256}})) return;
    if (!tries.has_another(std::make_error_code(std::errc::io_error)) || !tries.wait(goes_on)) break;
  }
  // Rank 0 waits for a note. Where the disk is full the part makes way for it.
  const Json note = {{"error", written_ ? "there is no room for its note" : written_.error().message}};
  std::error_code ignored;
  std::filesystem::remove(plan_.temporary / file_of_rank(rank_), ignored);
  const auto end = SteadyClock::now() + at_most;
  while (!gives_up && SteadyClock::now() < end && !is_gone(plan_.temporary) && !write_json_file(path, note))
    std::this_thread::sleep_for(kLookAgain);
}

std::optional<Result<std::vector<ManifestFile>>> SharedSave::collect_notes(
    const std::function<Wait()>& wait) const {
  std::vector<ManifestFile> files;
  std::string failed = written_ ? "" : "rank 0: " + written_.error().message;
  if (written_ && written_->bytes > 0) files.push_back(*written_);
  for (int rank = 1; rank < world_size_; ++rank) {
    const auto path = note_of(plan_.temporary, rank);
    auto note = read_json_file(path);
    for (int looks_in_vain = 0; !note; note = read_json_file(path)) {
      const Wait now = wait();
      if (now == Wait::no_more) return std::nullopt;
      // The disk may have stood until now.
      if (now == Wait::in_vain && ++looks_in_vain > kLastLooks) break;
      std::this_thread::sleep_for(kLookAgain);
    }
    if (!note) {
      failed += (failed.empty() ? "" : "; ") +
                fmt::format("rank {} could leave no word of its part in {}", rank, plan_.temporary.string());
      continue;
    }
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    if (note->contains("error"))
      failed += (failed.empty() ? "" : "; ") + fmt::format("rank {}: {}", rank, note->value("error", ""));
    else if (note->value("bytes", std::uint64_t{0}) > 0)
      files.push_back(
          {file_of_rank(rank), note->value("bytes", std::uint64_t{0}), note->value("sha256", "")});
  }
  if (!failed.empty()) return fail(ErrorKind::failed, failed);
  return files;
}

}  // namespace footplate
