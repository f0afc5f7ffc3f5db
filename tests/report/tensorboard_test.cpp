// Tests the framing of records and the behaviour of the log. tensorboard_agreement.py tests that TensorBoard reads the
// files.
#include "report/tensorboard.h"

#include <gtest/gtest.h>

#include <cstring>

#include "report/crc32c.h"
#include "temp_dir.h"

namespace megalith {
namespace {

// The records of a TFRecord file; fails the test where framing is wrong.
std::vector<std::string> records_of(std::string_view file) {
  std::vector<std::string> records;
  auto take = [&](size_t n) {
    std::string_view piece = file.substr(0, n);
    EXPECT_EQ(piece.size(), n) << "torn record";
    file.remove_prefix(piece.size());
    return piece;
  };
  auto number = [](std::string_view bytes) {  // little-endian
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  };
  while (!file.empty() && !testing::Test::HasFailure()) {
    std::string_view length = take(8);
    EXPECT_EQ(number(take(4)), masked_crc32c(length));
    std::string_view data = take(number(length));
    EXPECT_EQ(number(take(4)), masked_crc32c(data));
    records.emplace_back(data);
  }
  return records;
}

StepMetrics at_step(int64_t step) {
  StepMetrics m;
  m.step = step;
  m[MetricId::loss] = 2.5;
  return m;
}

TEST(TensorBoard, AFileBeginsWithItsVersionAndHasOneRecordAStep) {
  TempDir dir;
  TensorBoardLog log(dir / "tensorboard", 0);
  log.append(at_step(1));
  StepMetrics with_text = at_step(2);
  with_text[MetricId::valid_loss] = 2.25;
  with_text.sample = "to be\nor not";
  log.append(with_text);
  auto records = records_of(dir.read("tensorboard/" + log.path().filename().string()));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_NE(records[0].find("brain.Event:2"), std::string::npos);
  EXPECT_NE(records[1].find("loss/train"), std::string::npos);
  EXPECT_EQ(records[1].find("loss/valid"), std::string::npos);
  EXPECT_NE(records[2].find("loss/valid"), std::string::npos);
  EXPECT_NE(records[2].find("    to be\n    or not"), std::string::npos);  // indented: markdown's "as it is"
}

// TensorBoard reads files in the order of their names; two starts may share a second and a clock may go back.
TEST(TensorBoard, AResumedRunsFileSortsAfterTheEarlierOnes) {
  TempDir dir;
  std::filesystem::create_directories(dir / "tensorboard");
  dir.write("tensorboard/events.out.tfevents.4000000000.host.1", "");
  TensorBoardLog log(dir / "tensorboard", 5);
  EXPECT_GT(log.path().filename().string(), "events.out.tfevents.4000000000.host.1");
  auto records = records_of(dir.read("tensorboard/" + log.path().filename().string()));
  EXPECT_EQ(records.size(), 2u);  // version, start of a session
}

}  // namespace
}  // namespace megalith
