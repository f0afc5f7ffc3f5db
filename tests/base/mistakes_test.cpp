#include "base/mistakes.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

UserError about(const std::string& key, const std::string& expected) { return UserError({"run.yaml", key, expected, "5", ""}); }

std::string text_of(const Mistakes& mistakes) {
  try {
    mistakes.throw_any();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Mistakes, OneStaysAsItIsAndSeveralAreListed) {
  Mistakes mistakes;
  EXPECT_TRUE(mistakes.none_in([] {}));
  EXPECT_EQ(text_of(mistakes), "");
  EXPECT_FALSE(mistakes.none_in([] { throw about("a.x", "less"); }));
  EXPECT_EQ(text_of(mistakes), "run.yaml: a.x: expected less, got 5");
  mistakes.none_in([] {
    Mistakes inner;
    inner.add(about("b.x", "more"));
    inner.add(about("c.x", "another"));
    inner.throw_any();
  });
  EXPECT_EQ(text_of(mistakes),
            "3 mistakes:\n  run.yaml: a.x: expected less, got 5\n  run.yaml: b.x: expected more, got 5\n"
            "  run.yaml: c.x: expected another, got 5");
}

TEST(Mistakes, OneThatMayFollowFromAnotherIsLeftOut) {
  Mistakes mistakes;
  mistakes.add(about("train.steps", "a number"));
  mistakes.add(about("train.warmup", "at most train.steps"));
  EXPECT_EQ(text_of(mistakes), "run.yaml: train.steps: expected a number, got 5");
}

TEST(Mistakes, OtherExceptionsPassThrough) {
  Mistakes mistakes;
  EXPECT_THROW(mistakes.none_in([] { throw Fault("the disk is full"); }), Fault);
}

}  // namespace
}  // namespace megalith
