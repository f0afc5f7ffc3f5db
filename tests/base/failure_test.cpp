#include "base/failure.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>

namespace megalith {
namespace {

template <class Exception>
Failure failure_by(Exception exception) {
  return failure_of(std::make_exception_ptr(std::move(exception)));
}

TEST(Failure, HasTheExitCodeOfItsKind) {
  EXPECT_EQ(failure_by(UserError({"run.yaml:3", "train.lr", "a number", "x", ""})).code, ExitCode::user);
  EXPECT_EQ(failure_by(Interrupted("stopped")).code, ExitCode::interrupted);
  EXPECT_EQ(failure_by(Fault("disk full")).code, ExitCode::fault);
  EXPECT_EQ(failure_by(std::filesystem::filesystem_error("rename", std::error_code())).code, ExitCode::fault);
  EXPECT_EQ(failure_by(std::bad_alloc()).code, ExitCode::fault);
  EXPECT_EQ(failure_by(std::system_error(EAGAIN, std::generic_category())).code, ExitCode::fault);
  EXPECT_EQ(failure_by(Bug("x > 0")).code, ExitCode::bug);
  EXPECT_EQ(failure_by(std::runtime_error("odd")).code, ExitCode::bug);
  EXPECT_EQ(failure_by(7).code, ExitCode::bug);
}

TEST(Failure, OursSayEverythingAndThoseOfLibrariesTheirFirstLine) {
  EXPECT_EQ(failure_by(Fault("does not fit:\n  parameters 3 GiB")).text, "does not fit:\n  parameters 3 GiB");
  EXPECT_EQ(failure_by(std::runtime_error("odd shape\nframe #0: at::mm")).text, "odd shape");
  EXPECT_EQ(failure_by(std::bad_alloc()).text, "out of memory");
}

TEST(Failure, OfAPathThatCannotBeUsedIsTheUsersMistake) {
  const std::string path(100000, 'x');
  try {
    FAIL() << "a path of any length exists: " << std::filesystem::exists(path);
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    EXPECT_EQ(failure.code, ExitCode::user);
    EXPECT_LT(failure.text.size(), 400u);
    EXPECT_TRUE(failure.text.ends_with("(100000 bytes): File name too long")) << failure.text;
  }
}

TEST(Failure, OfAnyKindShowsLongWordsShortened) {
  EXPECT_LT(failure_by(Fault("cannot write " + std::string(100000, 'x'))).text.size(), 400u);
}

}  // namespace
}  // namespace megalith
