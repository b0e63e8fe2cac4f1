#include "run_files/lease.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <ctime>

#include "tests/unit/run_files/folder_fixture.h"

namespace footplate {
namespace {

using std::chrono::seconds;
using Entries = std::filesystem::directory_iterator;

class LeaseTest : public test::FolderTest {
 protected:
  /// As a disk whose clock differs would have it, or a supervisor that was silent.
  void set_renewed(seconds ago) {
    const timespec when{std::time(nullptr) - ago.count(), 0};
    const timespec times[2] = {when, when};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ / "alive").c_str(), times, 0), 0);
  }
};

TEST_F(LeaseTest, IsYoungOnceRenewed) {
  EXPECT_FALSE(age_of_lease(folder_));
  renew_lease(folder_);
  ASSERT_TRUE(age_of_lease(folder_));
  EXPECT_LE(*age_of_lease(folder_), seconds(5));
  end_lease(folder_);
  EXPECT_FALSE(age_of_lease(folder_));
}

TEST_F(LeaseTest, MayBeOverAtOnce) {
  expire_lease(folder_);
  EXPECT_GT(*age_of_lease(folder_), kLeaseEnds);
  renew_lease(folder_);
  EXPECT_LE(*age_of_lease(folder_), seconds(5));
}

TEST_F(LeaseTest, MayBeOlderThanThisHostThinks) {
  renew_lease(folder_);
  set_renewed(seconds(20));
  EXPECT_GE(*exact_age_of_lease(folder_), seconds(20));
  EXPECT_EQ(std::distance(Entries(folder_), Entries()), 1);  // nothing is left
}

TEST_F(LeaseTest, IsJudgedByTheDisksClock) {
  renew_lease(folder_);
  set_renewed(seconds(100));
  EXPECT_GT(*age_of_lease(folder_), kLeaseEnds);
  renew_lease(folder_);
  EXPECT_LE(*age_of_lease(folder_), seconds(5));
  set_renewed(seconds(-3600));  // in an hour: this host's clock is behind
  EXPECT_LT(*age_of_lease(folder_), seconds(0));
  EXPECT_EQ(std::distance(Entries(folder_), Entries()), 1);  // nothing is left
}

}  // namespace
}  // namespace footplate
