// Damage of any kind, at any place: refused, the process alive, the model untouched.
#include "fixture.h"
#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/resume.h"

namespace footplate {
namespace {

using test::load;
using test::save_step;
using test::TemporaryFolder;

class DamageTest : public testing::Test {
 protected:
  void SetUp() override {
    checkpoint_ = save_step(store_, 5)->path;
    ASSERT_TRUE(verify_checkpoint(checkpoint_));
  }

  /// Neither way of reading takes it.
  bool refused() { return !verify_checkpoint(checkpoint_) && !load(checkpoint_); }

  TemporaryFolder run_;
  PosixDisk disk_;
  CheckpointStore store_{branch_folder(run_.path()), disk_};
  std::filesystem::path checkpoint_;
};

TEST_F(DamageTest, EveryFlippedByte) {
  for (const char* name : {"manifest.json", "rank-0.safetensors"}) {
    const std::string whole = test::read_file(checkpoint_ / name);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(~damaged[i]);
      test::write_file(checkpoint_ / name, damaged);
      ASSERT_TRUE(refused()) << name << " byte " << i;
    }
    test::write_file(checkpoint_ / name, whole);
    ASSERT_FALSE(refused());
  }
}

TEST_F(DamageTest, EveryLength) {
  for (const char* name : {"manifest.json", "rank-0.safetensors"}) {
    const std::string whole = test::read_file(checkpoint_ / name);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      test::write_file(checkpoint_ / name, whole.substr(0, length));
      ASSERT_TRUE(refused()) << name << " cut to " << length;
    }
    test::write_file(checkpoint_ / name, whole + '\0');
    ASSERT_TRUE(refused()) << name;
    test::write_file(checkpoint_ / name, whole);
  }
}

TEST_F(DamageTest, MissingAndUnlistedFiles) {
  test::write_file(checkpoint_ / "extra.bin", "x");
  EXPECT_NE(
      verify_checkpoint(checkpoint_).error().message.find("'extra.bin', which its manifest doesn't list"),
      std::string::npos);
  EXPECT_TRUE(refused());
  std::filesystem::remove(checkpoint_ / "extra.bin");
  std::filesystem::remove(checkpoint_ / "rank-0.safetensors");
  EXPECT_NE(verify_checkpoint(checkpoint_).error().message.find("rank-0.safetensors is missing"),
            std::string::npos);
  EXPECT_TRUE(refused());
}

TEST_F(DamageTest, TwoCheckpointsMixed) {
  const auto other = save_step(store_, 6)->path;
  std::filesystem::copy_file(other / "rank-0.safetensors", checkpoint_ / "rank-0.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(verify_checkpoint(checkpoint_).error().message.find("is damaged"), std::string::npos);
  EXPECT_TRUE(refused());
}

TEST_F(DamageTest, AFolderUnderAnothersName) {
  const auto other = checkpoint_.parent_path() / "step-00000009";
  std::filesystem::rename(checkpoint_, other);
  EXPECT_NE(verify_checkpoint(other).error().message.find("its manifest is that of step-00000005"),
            std::string::npos);
  // A copy under a name of the user's own is fine.
  std::filesystem::rename(other, run_.path() / "good-one");
  EXPECT_TRUE(load(run_.path() / "good-one"));
}

TEST_F(DamageTest, LinksAreNotFollowed) {
  const auto elsewhere = run_.path() / "elsewhere";
  std::filesystem::rename(checkpoint_ / "rank-0.safetensors", elsewhere);
  std::filesystem::create_symlink(elsewhere, checkpoint_ / "rank-0.safetensors");
  EXPECT_NE(verify_checkpoint(checkpoint_).error().message.find("is a symbolic link"), std::string::npos);
  EXPECT_TRUE(refused());
}

TEST_F(DamageTest, FilesThatFitTheirManifestButAreNotSafetensors) {
  Manifest manifest = *verify_checkpoint(checkpoint_);
  test::write_file(checkpoint_ / "rank-0.safetensors", "");
  EXPECT_TRUE(refused());
  // Hash and size are right, content isn't: the format's own rules refuse it.
  PosixDisk disk;
  const std::string garbage = "0123456789";
  manifest.files[0].bytes = garbage.size();
  manifest.files[0].sha256 = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";
  test::write_file(checkpoint_ / "rank-0.safetensors", garbage);
  test::write_file(checkpoint_ / "manifest.json", to_text(manifest));
  EXPECT_FALSE(load(checkpoint_));
}

}  // namespace
}  // namespace footplate
