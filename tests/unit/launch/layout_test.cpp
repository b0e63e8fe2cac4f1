// In every layout each program finds each part. The files are empty; where they are is what counts.
#include "protocol/layout.h"

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "console/launch/start/find_rank.h"
#include "tests/unit/run_files/folder_fixture.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuntime = "venv/lib/python3.11/site-packages/footplate_runtime/";

struct Sought {
  const char* layout;
  const char* folder;  ///< of the program that asks
  Part part;
  const char* where;  ///< below the layout's own folder
};

void PrintTo(const Sought& sought, std::ostream* out) {
  *out << sought.layout << ": " << sought.where << " from " << sought.folder;
}

/// All files of a layout, "a layout/…" below a folder with a blank in its name.
const std::map<std::string, std::vector<std::string>> kLayouts{
    {"build",
     {"build/release/bin/footplate-rank", "build/release/bin/footplate-console",
      "build/release/bin/footplate-lua", "build/release/lib/libfootplate_cuda.so",
      "build/release/share/footplate/schema.json", "build/release/lib/footplate/mpi/bin/mpirun",
      "configs/kjv.lua"}},
    {"prefix",
     {"bin/footplate-rank", "bin/footplate-console", "bin/footplate-lua", "lib/libfootplate_cuda.so",
      "share/footplate/schema.json", "share/footplate/configs/kjv.lua", "lib/footplate/mpi/bin/mpirun",
      "bin/mpirun"}},
    {"bundle",
     {"bin/footplate-rank", "bin/footplate-console", "bin/footplate-lua", "lib/libfootplate_cuda.so",
      "share/footplate/schema.json", "share/footplate/configs/kjv.lua", "share/footplate/kjv.txt",
      "mpi/bin/mpirun"}},
    {"wheels",
     {"venv/bin/footplate-console", "venv/bin/footplate-lua", "venv/bin/mpirun",
      "venv/share/footplate/schema.json", "venv/share/footplate/configs/kjv.lua",
      std::string(kRuntime) + "torch-2.11.0/bin/footplate-rank",
      std::string(kRuntime) + "torch-2.11.0/lib/libfootplate_cuda.so",
      std::string(kRuntime) + "share/footplate/kjv.txt"}},
};

constexpr const char* kBuild = "build/release/bin";
constexpr const char* kWheel = "venv/bin";
constexpr const char* kWheelRank = "venv/lib/python3.11/site-packages/footplate_runtime/torch-2.11.0/bin";

const std::vector<Sought> kSought{
    {"build", kBuild, Part::rank, "build/release/bin/footplate-rank"},
    {"build", kBuild, Part::console, "build/release/bin/footplate-console"},
    {"build", kBuild, Part::lua, "build/release/bin/footplate-lua"},
    {"build", kBuild, Part::schema, "build/release/share/footplate/schema.json"},
    {"build", kBuild, Part::configs, "configs"},
    {"build", kBuild, Part::cuda_library, "build/release/lib/libfootplate_cuda.so"},
    {"build", kBuild, Part::mpirun, "build/release/lib/footplate/mpi/bin/mpirun"},
    {"prefix", "bin", Part::rank, "bin/footplate-rank"},
    {"prefix", "bin", Part::console, "bin/footplate-console"},
    {"prefix", "bin", Part::lua, "bin/footplate-lua"},
    {"prefix", "bin", Part::schema, "share/footplate/schema.json"},
    {"prefix", "bin", Part::configs, "share/footplate/configs"},
    {"prefix", "bin", Part::cuda_library, "lib/libfootplate_cuda.so"},
    {"prefix", "bin", Part::python_library, "lib/libfootplate_python.so"},
    {"prefix", "bin", Part::python_modules, "lib/python"},
    {"prefix", "bin", Part::mpirun, "lib/footplate/mpi/bin/mpirun"},
    {"bundle", "bin", Part::rank, "bin/footplate-rank"},
    {"bundle", "bin", Part::console, "bin/footplate-console"},
    {"bundle", "bin", Part::lua, "bin/footplate-lua"},
    {"bundle", "bin", Part::schema, "share/footplate/schema.json"},
    {"bundle", "bin", Part::configs, "share/footplate/configs"},
    {"bundle", "bin", Part::cuda_library, "lib/libfootplate_cuda.so"},
    {"bundle", "bin", Part::kjv, "share/footplate/kjv.txt"},
    {"bundle", "bin", Part::mpirun, "mpi/bin/mpirun"},
    {"wheels", kWheel, Part::runtimes, "venv/lib/python3.11/site-packages/footplate_runtime"},
    {"wheels", kWheel, Part::console, "venv/bin/footplate-console"},
    {"wheels", kWheel, Part::lua, "venv/bin/footplate-lua"},
    {"wheels", kWheel, Part::schema, "venv/share/footplate/schema.json"},
    {"wheels", kWheel, Part::configs, "venv/share/footplate/configs"},
    {"wheels", kWheel, Part::mpirun, "venv/bin/mpirun"},
    {"wheels", kWheelRank, Part::rank,
     "venv/lib/python3.11/site-packages/footplate_runtime/torch-2.11.0/bin/footplate-rank"},
    {"wheels", kWheelRank, Part::console, "venv/bin/footplate-console"},
    {"wheels", kWheelRank, Part::cuda_library,
     "venv/lib/python3.11/site-packages/footplate_runtime/torch-2.11.0/lib/libfootplate_cuda.so"},
    {"wheels", kWheelRank, Part::kjv,
     "venv/lib/python3.11/site-packages/footplate_runtime/share/footplate/kjv.txt"},
};

class Layout : public test::FolderTest {
 protected:
  /// Makes its files in `folder_`/"a layout".
  fs::path make(const std::string& layout) const {
    for (const auto& file : kLayouts.at(layout)) write("a layout/" + file, "");
    return folder_ / "a layout";
  }
};

class LayoutOf : public Layout, public testing::WithParamInterface<Sought> {};

TEST_P(LayoutOf, HasThePart) {
  const Sought& sought = GetParam();
  const fs::path root = make(sought.layout);
  fs::create_directories(root / sought.folder);
  EXPECT_EQ(find_part(sought.part, root / sought.folder), root / sought.where);
}

INSTANTIATE_TEST_SUITE_P(All, LayoutOf, testing::ValuesIn(kSought));

TEST_F(Layout, APartThatIsNowhereIsNamedWhereItIsNearest) {
  EXPECT_EQ(find_part(Part::schema, folder_ / "bin"), folder_ / "share/footplate/schema.json");
  EXPECT_EQ(find_part(Part::runtimes, folder_ / "bin"), "");
}

class RankOfWheels : public Layout {
 protected:
  Result<fs::path> found_with(const std::string& version_py) {
    root_ = make("wheels");
    write("a layout/" + std::string(kRuntime) + "torch-2.15.0/bin/footplate-rank", "");
    if (!version_py.empty()) write("a layout/venv/lib/python3.11/site-packages/torch/version.py", version_py);
    return find_rank(root_ / kWheel);
  }

  fs::path root_;
};

TEST_F(RankOfWheels, IsTheOneForTheTorchThatIsThere) {
  const auto rank = found_with("from typing import Optional\n__version__ = '2.15.0+cu130'\ndebug = False\n");
  ASSERT_TRUE(rank) << rank.error().message;
  EXPECT_EQ(*rank, root_ / kRuntime / "torch-2.15.0/bin/footplate-rank");
}

TEST_F(RankOfWheels, OfAnotherTorchIsRefusedWithBothVersionsAndWhatPipInstalls) {
  const auto rank = found_with("__version__ = '2.9.1'\n");
  ASSERT_FALSE(rank);
  EXPECT_EQ(rank.error().kind, ErrorKind::usage);
  for (const char* text : {"is torch 2.9.1", "for torch 2.11.0 or 2.15.0", "pip install torch==2.15.0"})
    EXPECT_NE(rank.error().message.find(text), std::string::npos) << rank.error().message;
}

TEST_F(RankOfWheels, WithoutTorchIsRefused) {
  const auto rank = found_with("");
  ASSERT_FALSE(rank);
  for (const char* text : {"there is no torch in ", "site-packages/torch", "pip install torch==2.15.0"})
    EXPECT_NE(rank.error().message.find(text), std::string::npos) << rank.error().message;
}

TEST_F(RankOfWheels, ACommandThatIsAloneSaysWhatToInstall) {
  write("lib/python3.11/site-packages/footplate-0.1.0.dist-info/METADATA", "");
  const auto rank = find_rank(folder_ / "bin");
  ASSERT_FALSE(rank);
  EXPECT_NE(rank.error().message.find("pip install footplate-runtime"), std::string::npos)
      << rank.error().message;
}

}  // namespace
}  // namespace footplate
